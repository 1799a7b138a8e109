//! What comes over a socket: the cutting of frames, request headers, and the bodies of all requests at all versions.

use bytes::{BufMut, Bytes};
use monedula::api::{Entry, TABLE, entry};
use monedula::net::frame::FrameCutter;
use monedula::wire::head::{peek_api, read_head};

/// Most bytes of a frame.
const FRAME_BYTES_MAX: usize = 1 << 20;
/// What decoding a request may cost beyond its frame.
const COST_MAX: usize = 1 << 20;

/// A stream that comes in pieces, whose size the first byte tells.
pub fn frame(input: &[u8]) {
    let Some((size, stream)) = input.split_first() else { return };
    let mut cutter = FrameCutter::new(FRAME_BYTES_MAX);
    for piece in stream.chunks(usize::from(*size).max(1)) {
        let room = cutter.next_room();
        assert!(room <= FRAME_BYTES_MAX, "room for {room} bytes");
        cutter.room(piece.len()).put_slice(piece);
        cutter.filled(piece.len(), room);
        loop {
            match cutter.next_frame() {
                Ok(Some(frame)) => whole_frame(frame),
                Ok(None) => break,
                Err(_) => return,
            }
        }
        assert!(cutter.buffered() <= stream.len());
    }
}

fn whole_frame(mut frame: Bytes) {
    let Some((key, version)) = peek_api(&frame) else { return };
    let Some((_, entry)) = entry(key).filter(|(_, entry)| entry.serves(version)) else { return };
    if read_head(&mut frame, entry.has_flexible_head(version)).is_ok() {
        decode(entry, version, frame);
    }
}

/// The body of a request: the first byte chooses the API, the second the version.
pub fn request(input: &[u8]) {
    let [api, version, body @ ..] = input else { return };
    let entry = &TABLE[usize::from(*api) % TABLE.len()];
    let (first, last) = entry.versions_served;
    let version = first + i16::from(*version) % (last - first + 1);
    decode(entry, version, Bytes::copy_from_slice(body));
}

fn decode(entry: &Entry, version: i16, body: Bytes) {
    if let Ok(cost) = entry.decode_only(version, body, COST_MAX) {
        assert!(cost <= COST_MAX, "{} v{version} cost {cost} bytes", entry.name);
    }
}
