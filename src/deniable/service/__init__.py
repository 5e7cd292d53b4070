"""Pages over HTTP: the sensitive survey, for respondents and for its operator."""
