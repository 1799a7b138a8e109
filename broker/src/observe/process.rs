//! The process as a whole. Crate prometheus reads most of it, but counts processor time in whole seconds, which a node that
//! needs a few hundredths of one a minute never shows.

use prometheus::proto::MetricFamily;
use rustix::time::{ClockId, clock_gettime};

/// Puts the exact processor time in the place of the rounded one.
pub(super) fn refine(families: &mut [MetricFamily]) {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = time.tv_sec as f64 + time.tv_nsec as f64 / 1e9;
    for family in families.iter_mut().filter(|family| family.name() == "process_cpu_seconds_total") {
        for metric in family.mut_metric() {
            let mut counter = metric.get_counter().clone();
            counter.set_value(seconds);
            metric.set_counter(counter);
        }
    }
}

#[cfg(test)]
mod tests {
    use prometheus::core::Collector;
    use prometheus::process_collector::ProcessCollector;

    use super::*;

    #[test]
    fn processor_time_has_fractions_of_a_second() {
        let mut families = ProcessCollector::for_self().collect();
        refine(&mut families);
        let cpu = families.iter().find(|family| family.name() == "process_cpu_seconds_total").unwrap();
        let seconds = cpu.get_metric()[0].get_counter().get_value();
        assert!(seconds > 0.0 && seconds.fract() > 0.0);
    }
}
