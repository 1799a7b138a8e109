//! The seam to randomness: ids of topics, members and clusters, and nothing that needs to be secret.

use std::sync::Mutex;

use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};
use uuid::Uuid;

/// Where random values come from.
pub trait Entropy: Send + Sync + 'static {
    /// A random 64-bit value.
    fn next_u64(&self) -> u64;

    /// A random version-4 UUID whose base64 form does not begin with `-`, so that tools never take it for a flag
    /// (Kafka: Uuid.randomUuid).
    fn uuid(&self) -> Uuid {
        loop {
            let bits = (u128::from(self.next_u64()) << 64) | u128::from(self.next_u64());
            let id = uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid();
            // The first base64 character is made of the six highest bits; 62 is `-`.
            if id.as_bytes()[0] >> 2 != 62 {
                return id;
            }
        }
    }
}

/// The machine's random source.
#[derive(Debug, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    #[allow(clippy::disallowed_methods, reason = "this is the one place that asks the machine for random values")]
    fn next_u64(&self) -> u64 {
        rand::rng().next_u64()
    }
}

/// Repeatable values from a seed, for tests.
#[derive(Debug)]
pub struct SeededEntropy(Mutex<StdRng>);

impl SeededEntropy {
    /// The sequence that belongs to `seed`.
    pub fn new(seed: u64) -> Self {
        SeededEntropy(Mutex::new(StdRng::seed_from_u64(seed)))
    }
}

impl Entropy for SeededEntropy {
    fn next_u64(&self) -> u64 {
        match self.0.lock() {
            Ok(mut rng) => rng.next_u64(),
            // Another test thread died while it drew a value; the sequence is no longer repeatable.
            Err(_) => std::process::abort(),
        }
    }
}
