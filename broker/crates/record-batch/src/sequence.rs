//! Arithmetic on producer sequence numbers, which count from 0 to 2^31 - 1 and then begin again at 0.

/// `sequence + increment`, wrapped (Kafka: DefaultRecordBatch.incrementSequence). `sequence` is not negative.
pub fn increment_sequence(sequence: i32, increment: i32) -> i32 {
    // Clearing the sign bit of the sum is the remainder by 2^31, which is the wrap Kafka computes.
    sequence.wrapping_add(increment) & i32::MAX
}

/// `sequence - decrement`, wrapped (Kafka: DefaultRecordBatch.decrementSequence). `sequence` is not negative.
pub fn decrement_sequence(sequence: i32, decrement: i32) -> i32 {
    sequence.wrapping_sub(decrement) & i32::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bl_013_the_sequence_after_the_largest_is_zero() {
        assert_eq!(increment_sequence(i32::MAX, 1), 0);
        assert_eq!(increment_sequence(i32::MAX - 1, 1), i32::MAX);
        assert_eq!(increment_sequence(i32::MAX - 1, 4), 2);
        assert_eq!(increment_sequence(0, i32::MAX), i32::MAX);
        assert_eq!(decrement_sequence(0, 1), i32::MAX);
        assert_eq!(decrement_sequence(2, 4), i32::MAX - 1);
    }
}
