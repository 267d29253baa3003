"""Operations: doctor, health, status and metrics."""
