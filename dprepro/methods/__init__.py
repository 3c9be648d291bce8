"""The methods that configs can name; a new method is one new file here."""
