"""Jobs of servers, which all servers of a store share."""
