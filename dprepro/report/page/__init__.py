"""What the page of `dprepro report` shows, and the template that shows it."""
