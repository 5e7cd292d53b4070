<<<<<<< HEAD
"""What runs on a server and in a respondent's browser."""
=======
"""Pages over HTTP: the sensitive survey, for respondents and for its operator."""
>>>>>>> 6a1014b (Sensitive surveys over HTTP: documents, a store that links nothing, respondents' and operators' pages, deniable survey)
