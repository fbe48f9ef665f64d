"""Arrays, errors, integers and pictures: what every other folder uses; imports no other folder."""
