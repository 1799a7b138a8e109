//! Growth of totals over the last one to two minutes, for the series that Kafka shows as rates and means. Two readers share
//! one window and do not shorten it for each other, unlike "since the last scrape".

use std::time::Duration;

use parking_lot::Mutex;

/// A period; growth is that of the last one to two, and of the time since the start before that.
const PERIOD: Duration = Duration::from_secs(60);

/// Totals as they were at the ends of earlier periods.
pub struct Window<const N: usize>(Mutex<Ends<N>>);

#[derive(Clone, Copy)]
struct Ends<const N: usize> {
    older: (Duration, [f64; N]),
    recent: (Duration, [f64; N]),
}

/// How much totals grew, and in which time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth<const N: usize> {
    /// The time.
    pub elapsed: Duration,
    /// Growth of each total.
    pub totals: [f64; N],
}

impl<const N: usize> Window<N> {
    /// A window that begins now, which is monotonic time, with these totals.
    pub fn new(now: Duration, totals: [f64; N]) -> Window<N> {
        Window(Mutex::new(Ends { older: (now, totals), recent: (now, totals) }))
    }

    /// Growth up to now, when the totals are these.
    pub fn growth(&self, now: Duration, totals: [f64; N]) -> Growth<N> {
        let mut ends = self.0.lock();
        let (since, then) = ends.older;
        if now.saturating_sub(ends.recent.0) >= PERIOD {
            *ends = Ends { older: ends.recent, recent: (now, totals) };
        }
        let mut grown = totals;
        grown.iter_mut().zip(then).for_each(|(now, then)| *now -= then);
        Growth { elapsed: now.saturating_sub(since), totals: grown }
    }
}

impl<const N: usize> Growth<N> {
    /// Growth of a total for each second; 0 while no time has passed.
    pub fn per_second(&self, index: usize) -> f64 {
        ratio(self.totals[index], self.elapsed.as_secs_f64())
    }

    /// Growth of a total for each unit that another has grown by; 0 while that one has not grown.
    pub fn mean(&self, sum: usize, count: usize) -> f64 {
        ratio(self.totals[sum], self.totals[count])
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn growth_is_that_of_the_last_one_to_two_periods() {
        let window = Window::new(at(0), [0.0]);
        assert_eq!(window.growth(at(10), [10.0]), Growth { elapsed: at(10), totals: [10.0] });
        assert_eq!(window.growth(at(60), [100.0]).per_second(0), 100.0 / 60.0);
        assert_eq!(window.growth(at(120), [100.0]).elapsed, at(120));
        assert_eq!(window.growth(at(130), [150.0]), Growth { elapsed: at(70), totals: [50.0] });
    }

    #[test]
    fn a_second_reader_does_not_shorten_the_period() {
        let window = Window::new(at(0), [0.0]);
        window.growth(at(1), [50.0]);
        assert_eq!(window.growth(at(2), [60.0]).per_second(0), 30.0);
    }

    #[test]
    fn rates_and_means_of_nothing_are_zero() {
        let growth = Window::new(at(5), [1.0, 2.0]).growth(at(5), [1.0, 2.0]);
        assert_eq!((growth.per_second(0), growth.mean(0, 1)), (0.0, 0.0));
    }
}
