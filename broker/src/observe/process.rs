//! The process as a whole. Crate prometheus reads most of it, but counts processor time in whole seconds, which a node that
//! needs a few hundredths of one a minute never shows, and not what the process made the devices do.

use prometheus::proto::MetricFamily;
use rustix::fs::{Mode, OFlags};
use rustix::time::{ClockId, clock_gettime};

use super::family::{Families, Source};

/// Where the kernel tells what a process reads and writes.
const IO: &str = "/proc/self/io";
/// Bytes that it tells at most.
const IO_LEN_MAX: usize = 1024;

/// What the process made the devices read and write (Kafka: LinuxIoMetricsCollector). Without series where the kernel does
/// not tell.
pub(super) struct IoSource;

impl Source for IoSource {
    fn collect(&self, families: &mut Families) {
        let Ok(text) = read_io() else { return };
        for (name, help, key) in [
            (
                "kafka_server_kafkaserver_linux_disk_read_bytes",
                "Bytes that devices read for this process",
                "read_bytes",
            ),
            (
                "kafka_server_kafkaserver_linux_disk_write_bytes",
                "Bytes that devices were given to write by this process",
                "write_bytes",
            ),
        ] {
            if let Some(bytes) = io_value(&text, key) {
                families.gauge(name, help).row(&[], bytes as f64);
            }
        }
    }
}

fn read_io() -> std::io::Result<String> {
    let file = rustix::fs::open(IO, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut bytes = vec![0; IO_LEN_MAX];
    let read = rustix::io::read(&file, &mut bytes)?;
    bytes.truncate(read);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn io_value(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.split_once(": ").filter(|(name, _)| *name == key)?.1.trim().parse().ok())
}

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
    fn bytes_of_devices_are_not_those_of_calls() {
        let text = "rchar: 1\nwchar: 2\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 5\n";
        assert_eq!((io_value(text, "read_bytes"), io_value(text, "write_bytes")), (Some(4096), Some(8192)));
        assert_eq!(io_value(text, "bytes"), None);
    }

    #[test]
    fn processor_time_has_fractions_of_a_second() {
        let mut families = ProcessCollector::for_self().collect();
        refine(&mut families);
        let cpu = families.iter().find(|family| family.name() == "process_cpu_seconds_total").unwrap();
        let seconds = cpu.get_metric()[0].get_counter().get_value();
        assert!(seconds > 0.0 && seconds.fract() > 0.0);
    }
}
