"""Questions for batch services, which answer within a day and at half the price."""
