"""HTML pages in one file each: what all of them share."""
