"""What `headwater bench` measures. Each file measures one part beside its baseline; nothing imports from here."""
