"""A population and a small request, for the tests of the ledger."""

import deniable as dp

TENTH = dp.PureLoss(bound=0.1)
CLINIC = "clinic/patient"


def reserve(ledger, population, loss=TENTH, **more):
    return ledger.reserve(population, loss, who="ana", purpose="test", **more)
