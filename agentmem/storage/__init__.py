"""The stores that hold facts and transcripts, and the protocol that they implement."""
