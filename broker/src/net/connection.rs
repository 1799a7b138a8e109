//! One connection: reads frames, starts their requests in order, writes the answers in the same order. A request is
//! begun when the one before it is answered, except that Produce requests may follow each other while earlier ones are
//! still on their way to the log. The socket is not read while too much is under way, which is the back-pressure.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use base::Clock;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::budget::{ByteBudget, Charge};
use super::frame::{FrameCutter, FrameError};
use super::send::SendReply;
use crate::api::{self, CloseReason, Context, Entry, Finished, Order, Started};
use crate::node::Node;
use crate::observe::{QueuedRequests, RequestTimer};
use crate::security::Session;
use crate::tasks::StopSignal;
use crate::wire::reply_frame::ReplyFrame;
use crate::wire::{self, head};

/// Most requests of one connection under way at once; what a client may have in flight without asking for more memory
/// (`max.in.flight.requests.per.connection` is 5 by default).
const IN_FLIGHT_MAX: usize = 16;
/// Frames up to this size are charged when they are whole, in bytes; larger ones while they grow.
const SMALL_FRAME_BYTES: usize = 64 * 1024;
/// Longest pause inside a frame that already holds a charge of the byte budget.
const STALLED_FRAME_TIMEOUT: Duration = Duration::from_secs(30);
/// Answers that are ready together are written together, up to this many bytes.
const WRITE_BATCH_BYTES: usize = 128 * 1024;

/// Settings of a connection, read once when it is accepted.
#[derive(Debug, Clone)]
pub struct ConnectionSettings {
    /// `socket.request.max.bytes`.
    pub frame_bytes_max: usize,
    /// `connections.max.idle.ms`.
    pub idle: Duration,
}

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionEnd {
    /// The peer closed it, or nothing came for the idle time, or the node stops.
    #[error("closed")]
    Closed,
    /// The stream is not one of frames.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A frame is not a request that can be answered.
    #[error("{0}")]
    BadRequest(String),
    /// The socket failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A request whose turn has not come.
struct Waiting {
    frame: Bytes,
    charge: Charge,
    /// When its last byte was read, in monotonic time.
    arrived: Duration,
}

struct Answered {
    frame: Result<Option<ReplyFrame>, CloseReason>,
    timer: RequestTimer,
    // Held until the answer is on its way: the request's memory is free only then.
    _charge: Charge,
}

/// A connection between its first byte and its end.
pub struct Connection<S> {
    stream: S,
    node: Arc<Node>,
    session: Session,
    settings: ConnectionSettings,
    budget: ByteBudget,
    cutter: FrameCutter,
    growing: Charge,
    charged: usize,
    waiting: VecDeque<Waiting>,
    queued: QueuedRequests,
    in_flight: FuturesOrdered<futures_util::future::BoxFuture<'static, Answered>>,
    in_flight_order: Order,
}

impl<S: AsyncRead + SendReply + Unpin> Connection<S> {
    /// A connection that was just accepted.
    pub fn new(stream: S, node: Arc<Node>, session: Session, settings: ConnectionSettings, budget: ByteBudget) -> Self {
        Connection {
            cutter: FrameCutter::new(settings.frame_bytes_max),
            growing: budget.charge(),
            charged: 0,
            queued: node.metrics.queued_requests(),
            stream,
            node,
            session,
            settings,
            budget,
            waiting: VecDeque::new(),
            in_flight: FuturesOrdered::new(),
            in_flight_order: Order::Alone,
        }
    }

    /// Serves the connection until it ends.
    pub async fn serve(mut self, mut stop: StopSignal) {
        let end = tokio::select! {
            biased;
            end = self.run() => end,
            () = stop.stopped() => ConnectionEnd::Closed,
        };
        match end {
            ConnectionEnd::Closed => {}
            ConnectionEnd::Io(error) => tracing::debug!(peer = %self.session.peer, %error, "connection lost"),
            ConnectionEnd::Frame(_) | ConnectionEnd::BadRequest(_) => {
                tracing::warn!(peer = %self.session.peer, listener = %self.session.listener, "connection closed: {end}");
            }
        }
    }

    async fn run(&mut self) -> ConnectionEnd {
        loop {
            let step = if self.in_flight.is_empty() {
                self.read_some().await
            } else if self.waiting.is_empty() && self.in_flight_order == Order::Pipelined {
                tokio::select! {
                    biased;
                    Some(answered) = self.in_flight.next() => write_answers(&mut self.stream, &*self.node.clock, &mut self.in_flight, answered).await,
                    read = read_frame_bytes(&mut self.stream, &mut self.cutter) => self.bytes_came(read).await,
                }
            } else {
                match self.in_flight.next().await {
                    Some(answered) => {
                        write_answers(&mut self.stream, &*self.node.clock, &mut self.in_flight, answered).await
                    }
                    None => Ok(()),
                }
            };
            if let Err(end) = step.and_then(|()| self.start_requests()) {
                return end;
            }
        }
    }

    /// Reads when nothing is under way: only now can the connection be idle.
    async fn read_some(&mut self) -> Result<(), ConnectionEnd> {
        let patience =
            if self.charged > 0 { STALLED_FRAME_TIMEOUT.min(self.settings.idle) } else { self.settings.idle };
        match tokio::time::timeout(patience, read_frame_bytes(&mut self.stream, &mut self.cutter)).await {
            Ok(read) => self.bytes_came(read).await,
            Err(_) if self.charged > 0 => {
                Err(ConnectionEnd::BadRequest("no byte came for 30 s in the middle of a request".to_owned()))
            }
            Err(_) => Err(ConnectionEnd::Closed),
        }
    }

    /// Charges what came, and cuts whole frames off it.
    async fn bytes_came(&mut self, read: io::Result<usize>) -> Result<(), ConnectionEnd> {
        if read? == 0 {
            return Err(ConnectionEnd::Closed);
        }
        let buffered = self.cutter.buffered();
        if buffered > SMALL_FRAME_BYTES && buffered > self.charged {
            self.growing.is_of_large_request();
            self.take_budget(buffered - self.charged).await?;
            self.charged = buffered;
        }
        while let Some(frame) = self.cutter.next_frame()? {
            if self.charged == 0 {
                self.take_budget(frame.len()).await?;
            }
            self.charged = 0;
            let charge = std::mem::replace(&mut self.growing, self.budget.charge());
            let arrived = self.node.clock.monotonic();
            self.waiting.push_back(Waiting { frame, charge, arrived });
        }
        Ok(())
    }

    /// Charges `bytes` to the byte budget. While others hold all of it, requests of this connection go on, because they
    /// are among those who give it back.
    async fn take_budget(&mut self, bytes: usize) -> Result<(), ConnectionEnd> {
        while !self.growing.try_grow(bytes) {
            match self.in_flight.next().await {
                Some(answered) => {
                    write_answers(&mut self.stream, &*self.node.clock, &mut self.in_flight, answered).await?
                }
                None => {
                    let grown = tokio::time::timeout(STALLED_FRAME_TIMEOUT, self.growing.grow(bytes)).await;
                    return grown.map_err(|_| {
                        ConnectionEnd::BadRequest(
                            "the byte budget for requests (queued.max.request.bytes) was used up for 30 s".to_owned(),
                        )
                    });
                }
            }
        }
        Ok(())
    }

    /// Starts waiting requests as far as their order allows, and counts those that have to wait on.
    fn start_requests(&mut self) -> Result<(), ConnectionEnd> {
        let started = self.start_those_whose_turn_it_is();
        self.queued.set(self.waiting.len());
        started
    }

    fn start_those_whose_turn_it_is(&mut self) -> Result<(), ConnectionEnd> {
        while let Some(Waiting { frame, .. }) = self.waiting.front() {
            let (api_key, version) =
                head::peek_api(frame).ok_or_else(|| ConnectionEnd::BadRequest("the frame is too short".to_owned()))?;
            let (index, entry) = api::entry(api_key)
                .ok_or_else(|| ConnectionEnd::BadRequest(format!("there is no API with key {api_key}")))?;
            let overlaps = entry.order == Order::Pipelined && self.in_flight_order == Order::Pipelined;
            let may_begin = self.in_flight.is_empty() || (overlaps && self.in_flight.len() < IN_FLIGHT_MAX);
            if !may_begin {
                return Ok(());
            }
            let Some(waiting) = self.waiting.pop_front() else { return Ok(()) };
            self.in_flight_order = entry.order;
            self.start_request(index, entry, version, waiting)?;
        }
        Ok(())
    }

    fn start_request(
        &mut self,
        index: usize,
        entry: &'static Entry,
        version: i16,
        waiting: Waiting,
    ) -> Result<(), ConnectionEnd> {
        let Waiting { mut frame, mut charge, arrived } = waiting;
        let timer = self.node.metrics.request_began(index, version, frame.len(), arrived);
        let bad_request = |error: head::HeadError| ConnectionEnd::BadRequest(error.to_string());
        if !entry.serves(version) {
            return self.answer_unserved_version(entry, version, frame, charge, timer);
        }
        let head = head::read_head(&mut frame, entry.has_flexible_head(version)).map_err(bad_request)?;
        // A name of its own would keep the whole frame alive, and a batch in it from being changed in place.
        if *self.session.client_id != *head.client_id {
            self.session.client_id = (*head.client_id).into();
        }
        drop(head.client_id);
        let ctx = Context {
            node: self.node.clone(),
            session: self.session.clone(),
            version,
            correlation_id: head.correlation_id,
        };
        let Started { running, cost } = entry.run(ctx, frame, charge.available());
        if !charge.try_grow(cost) {
            // Another connection took what was free while this request was decoded.
            return Err(ConnectionEnd::BadRequest(wire::WireError::OverBudget.to_string()));
        }
        self.in_flight.push_back(Box::pin(async move {
            let mut timer = timer;
            let Finished { frame, waited } = running.await;
            timer.handled(frame_len(&frame), waited);
            Answered { frame, timer, _charge: charge }
        }));
        Ok(())
    }

    /// ApiVersions of an unknown version has an answer (KIP-511); any other request of one ends the connection, as in
    /// Kafka, because its header cannot be read with certainty.
    fn answer_unserved_version(
        &mut self,
        entry: &'static Entry,
        version: i16,
        mut frame: Bytes,
        charge: Charge,
        mut timer: RequestTimer,
    ) -> Result<(), ConnectionEnd> {
        if entry.key != api::api_versions::ENTRY.key {
            return Err(ConnectionEnd::BadRequest(format!("{} version {version} is not served", entry.name)));
        }
        let head = head::read_head(&mut frame, false).map_err(|e| ConnectionEnd::BadRequest(e.to_string()))?;
        let frame = wire::encode_reply(head.correlation_id, 0, &api::api_versions::unsupported_version());
        let frame = frame.map(|frame| Some(frame.into())).map_err(CloseReason::from);
        timer.handled(frame_len(&frame), Duration::ZERO);
        let answered = Answered { frame, timer, _charge: charge };
        self.in_flight.push_back(Box::pin(std::future::ready(answered)));
        Ok(())
    }
}

/// One read of the socket into the cutter's buffer. Cancel-safe: bytes are in the buffer or still in the socket.
async fn read_frame_bytes<S: AsyncRead + Unpin>(stream: &mut S, cutter: &mut FrameCutter) -> io::Result<usize> {
    let room = cutter.next_room();
    let read = stream.read_buf(cutter.room(room)).await?;
    cutter.filled(read, room);
    Ok(read)
}

fn frame_len(frame: &Result<Option<ReplyFrame>, CloseReason>) -> usize {
    frame.as_ref().map_or(0, |frame| frame.as_ref().map_or(0, ReplyFrame::len))
}

/// Writes an answer together with those behind it that are ready.
async fn write_answers<S: SendReply>(
    stream: &mut S,
    clock: &dyn Clock,
    in_flight: &mut FuturesOrdered<futures_util::future::BoxFuture<'static, Answered>>,
    first: Answered,
) -> Result<(), ConnectionEnd> {
    let mut answered = Some(first);
    let mut batch: Option<ReplyFrame> = None;
    let mut timers = Vec::with_capacity(1);
    while let Some(Answered { frame, timer, _charge }) = answered.take() {
        if let Some(frame) = frame.map_err(|reason| ConnectionEnd::BadRequest(reason.to_string()))? {
            match &mut batch {
                None => batch = Some(frame),
                Some(batch) => batch.append(frame),
            }
        }
        timers.push(timer);
        if batch.as_ref().is_none_or(|b| b.len() < WRITE_BATCH_BYTES) {
            answered = futures_util::FutureExt::now_or_never(in_flight.next()).flatten();
        }
    }
    let turn = clock.monotonic();
    if let Some(batch) = batch {
        stream.send_reply(batch).await?;
    }
    let sent = clock.monotonic();
    for timer in timers {
        timer.sent(turn, sent);
    }
    Ok(())
}
