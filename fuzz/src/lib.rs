//! What is done with bytes that nobody has checked: one function for each kind of input, called by the programs of cargo
//! fuzz (`libfuzzer/`) and by a driver on stable Rust (`tests/mutations.rs`) alike. A function panics where a rule is broken.

mod files;
mod records;
pub mod seeds;
mod wire;

/// As in the node: the types of messages reserve room for as many elements as a peer announces, which costs address space
/// alone with this allocator (docs/decisions/0002).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A kind of input.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, that of the program of cargo fuzz, and of its folder in `corpus/`.
    pub name: &'static str,
    /// What is done with it.
    pub run: fn(&[u8]),
    /// Inputs to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All kinds.
pub const TARGETS: [Target; 8] = [
    Target { name: "frame", run: wire::frame, seeds: seeds::frames },
    Target { name: "request", run: wire::request, seeds: seeds::requests },
    Target { name: "batch", run: records::batch, seeds: seeds::batches },
    Target { name: "codec", run: records::codec, seeds: seeds::payloads },
    Target { name: "segment", run: files::segment, seeds: seeds::segments },
    Target { name: "index", run: files::beside_a_segment, seeds: seeds::indexes },
    Target { name: "checkpoint", run: files::checkpoint, seeds: seeds::checkpoints },
    Target { name: "metadata", run: files::metadata, seeds: seeds::metadata },
];

/// The function of a name, for the programs of cargo fuzz; one that is unknown does nothing.
pub fn run(name: &str, input: &[u8]) {
    if let Some(target) = TARGETS.iter().find(|target| target.name == name) {
        (target.run)(input);
    }
}
