"""The store on a SQL database, one module per table or operation."""
