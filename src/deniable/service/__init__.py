"""What runs on a server and in a respondent's browser."""
