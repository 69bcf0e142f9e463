"""`hushbid transcript verify`: what one transcript proves, and what those of several parties prove together.

`account` takes from one file, record by record, what it says was sent and received; `agreement` compares
two parties' accounts; `equivocation` looks for two broadcasts of one round, and for two transcripts of one
party; `session` puts it together, and `text` tells people.
"""
