//! One byte budget for the requests of all connections (`queued.max.request.bytes`): frames as they arrive, and what
//! decoding makes of them. Without it a few hundred clients could each hold a frame of 100 MiB.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The budget. Cheap to clone.
#[derive(Clone)]
pub struct ByteBudget {
    free: Arc<Semaphore>,
}

/// Bytes taken from the budget; they go back when this is dropped.
pub struct Charge {
    budget: ByteBudget,
    permit: Option<OwnedSemaphorePermit>,
}

impl ByteBudget {
    /// A budget of `bytes`.
    pub fn new(bytes: usize) -> Self {
        ByteBudget { free: Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS))) }
    }

    /// Bytes that nobody holds at this moment.
    pub fn available(&self) -> usize {
        self.free.available_permits()
    }

    /// A charge of nothing, to be grown.
    pub fn charge(&self) -> Charge {
        Charge { budget: self.clone(), permit: None }
    }
}

impl Charge {
    fn add(&mut self, more: OwnedSemaphorePermit) {
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            none => *none = Some(more),
        }
    }

    /// Takes `bytes` more, waiting until others give them back.
    pub async fn grow(&mut self, bytes: usize) {
        // The semaphore is never closed, so an error cannot come; without a permit nothing is charged.
        if let Ok(more) = self.budget.free.clone().acquire_many_owned(to_permits(bytes)).await {
            self.add(more);
        }
    }

    /// Takes `bytes` more if they are free now.
    pub fn try_grow(&mut self, bytes: usize) -> bool {
        match self.budget.free.clone().try_acquire_many_owned(to_permits(bytes)) {
            Ok(more) => {
                self.add(more);
                true
            }
            Err(_) => false,
        }
    }
}

fn to_permits(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_charge_gives_its_bytes_back() {
        let budget = ByteBudget::new(100);
        let mut charge = budget.charge();
        assert!(charge.try_grow(60));
        assert!(!charge.try_grow(41));
        assert_eq!(budget.available(), 40);
        drop(charge);
        assert_eq!(budget.available(), 100);
    }
}
