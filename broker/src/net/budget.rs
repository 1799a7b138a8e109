//! One byte budget for the requests of all connections (`queued.max.request.bytes`): frames as they arrive, and what
//! decoding makes of them. Without it a few hundred clients could each hold a frame of 100 MiB.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Most bytes that are kept for small requests, and the part of a smaller budget: requests that stay in the memory for as
/// long as their client sends slowly must not shut everybody else out.
const KEPT_FOR_SMALL_BYTES_MAX: usize = 32 * 1024 * 1024;
const KEPT_FOR_SMALL_PART: usize = 8;
/// Most bytes of one request, its frame and what decoding makes of it, that come from those.
const SMALL_REQUEST_BYTES_MAX: usize = 128 * 1024;

/// The budget. Cheap to clone.
#[derive(Clone)]
pub struct ByteBudget {
    for_all: Arc<Semaphore>,
    for_small: Arc<Semaphore>,
}

/// Bytes taken from the budget; they go back when this is dropped.
pub struct Charge {
    budget: ByteBudget,
    for_all: Option<OwnedSemaphorePermit>,
    for_small: Option<OwnedSemaphorePermit>,
    is_large: bool,
}

impl ByteBudget {
    /// A budget of `bytes`, into which the largest frame of `frame_bytes_max` fits.
    pub fn new(bytes: usize, frame_bytes_max: usize) -> Self {
        let bytes = bytes.min(Semaphore::MAX_PERMITS);
        let beyond_the_largest = bytes.saturating_sub(frame_bytes_max);
        let kept = KEPT_FOR_SMALL_BYTES_MAX.min(bytes / KEPT_FOR_SMALL_PART).min(beyond_the_largest);
        ByteBudget { for_all: Arc::new(Semaphore::new(bytes - kept)), for_small: Arc::new(Semaphore::new(kept)) }
    }

    /// A charge of nothing, to be grown.
    pub fn charge(&self) -> Charge {
        Charge { budget: self.clone(), for_all: None, for_small: None, is_large: false }
    }
}

impl Charge {
    /// Says that the request is a large one, which leaves what is kept for small ones alone.
    pub fn is_of_large_request(&mut self) {
        self.is_large = true;
    }

    /// Bytes by which the charge could grow at this moment.
    pub fn available(&self) -> usize {
        let for_small = self.small_left().min(self.budget.for_small.available_permits());
        for_small.max(self.budget.for_all.available_permits())
    }

    /// Takes `bytes` more, waiting until others give them back.
    pub async fn grow(&mut self, bytes: usize) {
        // The semaphores are never closed, so an error cannot come; without a permit nothing is charged.
        if bytes <= self.small_left() {
            if let Ok(more) = self.budget.for_small.clone().acquire_many_owned(to_permits(bytes)).await {
                add(&mut self.for_small, more);
            }
        } else if let Ok(more) = self.budget.for_all.clone().acquire_many_owned(to_permits(bytes)).await {
            add(&mut self.for_all, more);
        }
    }

    /// Takes `bytes` more if they are free now.
    pub fn try_grow(&mut self, bytes: usize) -> bool {
        if let Ok(more) = self.budget.for_all.clone().try_acquire_many_owned(to_permits(bytes)) {
            add(&mut self.for_all, more);
            return true;
        }
        if bytes > self.small_left() {
            return false;
        }
        match self.budget.for_small.clone().try_acquire_many_owned(to_permits(bytes)) {
            Ok(more) => {
                add(&mut self.for_small, more);
                true
            }
            Err(_) => false,
        }
    }

    /// Bytes that may still come from what is kept for small requests.
    fn small_left(&self) -> usize {
        if self.is_large {
            return 0;
        }
        let held = [&self.for_all, &self.for_small].into_iter().flatten().map(OwnedSemaphorePermit::num_permits);
        SMALL_REQUEST_BYTES_MAX.saturating_sub(held.sum())
    }
}

fn add(held: &mut Option<OwnedSemaphorePermit>, more: OwnedSemaphorePermit) {
    match held {
        Some(held) => held.merge(more),
        none => *none = Some(more),
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
        let budget = ByteBudget::new(800, 100);
        let mut charge = budget.charge();
        assert!(charge.try_grow(600));
        assert!(!charge.try_grow(200));
        assert_eq!(budget.charge().available(), 100);
        drop(charge);
        assert_eq!(budget.charge().available(), 700);
    }

    #[tokio::test]
    async fn large_requests_leave_room_for_small_ones() {
        let budget = ByteBudget::new(8 << 20, 1 << 20);
        let mut large = budget.charge();
        large.is_of_large_request();
        assert!(large.try_grow(7 << 20));
        assert!(!large.try_grow(1));
        let mut small = budget.charge();
        assert!(small.try_grow(100 * 1024));
        small.grow(SMALL_REQUEST_BYTES_MAX - 100 * 1024).await;
        assert!(!small.try_grow(1), "a request that grows is a small one no more");
        assert_eq!(large.available(), 0);
        drop(large);
        assert!(small.try_grow(1));
    }

    #[test]
    fn the_largest_frame_fits_whatever_is_kept_for_small_ones() {
        let budget = ByteBudget::new(800, 800);
        let mut large = budget.charge();
        large.is_of_large_request();
        assert!(large.try_grow(800));
    }
}
