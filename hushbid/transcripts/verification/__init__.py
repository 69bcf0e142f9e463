"""`hushbid transcript verify`: what one transcript proves, and what several parties' prove together.

`account` collects from one file, record by record, the frames it claims were sent and received; `agreement`
compares two parties' accounts; `equivocation` looks for two broadcasts of one round, and for two transcripts
of one party; `session` combines the results, whose fields `shapes` names, and `text` shows them to people.
"""
