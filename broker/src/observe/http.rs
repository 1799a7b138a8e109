//! The HTTP pages for operators (`monedula.http.listen`): metrics, probes, state, version. HTTP/1 without encryption; every
//! connection carries one request, so that none can stay and use up the few that are allowed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use cluster::configs::rule::host_port;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::health::Health;
use super::metrics::Metrics;
use crate::net::listener::{ListenError, listen};
use crate::tasks::Tasks;

/// Connections served at once; more are closed.
const CONNECTIONS_MAX: usize = 64;
/// Longest life of a connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);
/// Scrapes that run at once; each may hold the text of every partition's series.
const SCRAPES_AT_ONCE: usize = 1;
/// Pause after a failed accept.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// Content type of the text format.
const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The pages cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The setting is no address.
    #[error("monedula.http.listen: '{0}' is not host:port")]
    Address(String),
    /// The address cannot be opened.
    #[error(transparent)]
    Listen(#[from] ListenError),
}

/// What the pages show.
#[derive(Clone)]
struct Shown {
    metrics: Arc<Metrics>,
    health: Arc<Health>,
    scrapes: Arc<Semaphore>,
}

/// Opens `address` (`host:port`; port 0 lets the system choose) and serves the pages until the node stops. Returns the
/// addresses that were opened.
///
/// # Errors
/// See [`HttpError`].
pub async fn serve(
    address: &str,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
    tasks: &Tasks,
) -> Result<Vec<SocketAddr>, HttpError> {
    let not_an_address = || HttpError::Address(address.to_owned());
    // `:9644` means every address of the machine, as in a listener.
    let (host, port) = match address.strip_prefix(':') {
        Some(port) => ("", port.parse().map_err(|_| not_an_address())?),
        None => host_port(address).ok_or_else(not_an_address)?,
    };
    let sockets = listen("monedula.http.listen", host, port).await?;
    let opened = sockets.iter().filter_map(|socket| socket.local_addr().ok()).collect();
    let pages = pages(Shown { metrics, health, scrapes: Arc::new(Semaphore::new(SCRAPES_AT_ONCE)) });
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    for socket in sockets {
        tasks.spawn(accept_loop(socket, pages.clone(), places.clone(), tasks.clone()));
    }
    Ok(opened)
}

fn pages(shown: Shown) -> Router {
    Router::new()
        .route("/metrics", get(metrics_page))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready_page))
        .route("/v1/broker-state", get(broker_state_page))
        .route("/version", get(version_page))
        .with_state(shown)
}

async fn accept_loop(socket: TcpListener, pages: Router, places: Arc<Semaphore>, tasks: Tasks) {
    let mut stop = tasks.stop_signal();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.stopped() => return,
            accepted = socket.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                if let Ok(place) = places.clone().try_acquire_owned() {
                    let pages = pages.clone();
                    let mut stop = tasks.stop_signal();
                    tasks.spawn(async move {
                        tokio::select! {
                            () = stop.stopped() => {}
                            () = serve_one(stream, pages) => {}
                        }
                        drop(place);
                    });
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept an HTTP connection; trying again");
                tokio::time::sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

async fn serve_one(stream: TcpStream, pages: Router) {
    let connection =
        http1::Builder::new().keep_alive(false).serve_connection(TokioIo::new(stream), TowerToHyperService::new(pages));
    // Whether the client saw its answer is the client's affair.
    let _ = tokio::time::timeout(CONNECTION_TIMEOUT, connection).await;
}

async fn metrics_page(State(shown): State<Shown>) -> Response {
    let Ok(_turn) = shown.scrapes.clone().acquire_owned().await else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let metrics = shown.metrics.clone();
    match Tasks::run_aside(move || metrics.scrape()).await {
        Some(Ok(text)) => ([(header::CONTENT_TYPE, PROMETHEUS_TEXT)], text).into_response(),
        Some(Err(error)) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
        None => (StatusCode::INTERNAL_SERVER_ERROR, "a source of metrics failed; the log says which\n").into_response(),
    }
}

async fn ready_page(State(shown): State<Shown>) -> Response {
    let state = shown.health.state();
    let (code, ready, reason) = match state.reason_not_ready() {
        None => (StatusCode::OK, true, "running"),
        Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, false, reason),
    };
    json(code, format!("{{\"ready\":{ready},\"brokerState\":{},\"reason\":\"{reason}\"}}", state as u8))
}

async fn broker_state_page(State(shown): State<Shown>) -> Response {
    json(StatusCode::OK, shown.health.broker_state_json())
}

async fn version_page() -> Response {
    json(StatusCode::OK, format!("{{\"name\":\"monedula\",\"version\":\"{}\"}}", env!("CARGO_PKG_VERSION")))
}

fn json(code: StatusCode, body: String) -> Response {
    (code, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

#[cfg(test)]
mod tests {
    use base::ManualClock;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::super::health::BrokerState;
    use super::*;

    struct Site {
        address: SocketAddr,
        health: Arc<Health>,
        tasks: Tasks,
    }

    async fn site() -> Site {
        let metrics = Metrics::new(Arc::new(ManualClock::at(0)));
        let health = Arc::new(Health::default());
        metrics.add_source(health.clone());
        let tasks = Tasks::new();
        let opened = serve("127.0.0.1:0", metrics, health.clone(), &tasks).await.unwrap();
        Site { address: opened[0], health, tasks }
    }

    impl Site {
        async fn get(&self, path: &str) -> (String, String) {
            let mut stream = TcpStream::connect(self.address).await.unwrap();
            let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            (head.to_lowercase(), body.to_owned())
        }
    }

    #[tokio::test]
    async fn readiness_follows_the_state_of_the_broker() {
        let site = site().await;
        let (head, body) = site.get("/readyz").await;
        assert!(head.starts_with("http/1.1 503"), "{head}");
        assert_eq!(body, r#"{"ready":false,"brokerState":0,"reason":"the node starts"}"#);
        site.health.set(BrokerState::Running);
        let (head, body) = site.get("/readyz").await;
        assert!(head.starts_with("http/1.1 200"), "{head}");
        assert_eq!(body, r#"{"ready":true,"brokerState":3,"reason":"running"}"#);
        assert_eq!(site.get("/v1/broker-state").await.1, r#"{"brokerState":3}"#);
        assert!(site.get("/healthz").await.0.starts_with("http/1.1 200"));
    }

    #[tokio::test]
    async fn metrics_come_in_the_text_format_of_prometheus() {
        let site = site().await;
        let (head, body) = site.get("/metrics").await;
        assert!(head.starts_with("http/1.1 200"), "{head}");
        assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
        assert!(
            body.contains(
                "# TYPE kafka_server_kafkaserver_brokerstate gauge\nkafka_server_kafkaserver_brokerstate 0\n"
            )
        );
        assert!(body.ends_with('\n'));
    }

    #[tokio::test]
    async fn an_unknown_page_is_not_found_and_the_version_is_told() {
        let site = site().await;
        assert!(site.get("/nothing").await.0.starts_with("http/1.1 404"));
        assert!(site.get("/version").await.1.contains(env!("CARGO_PKG_VERSION")));
    }

    #[tokio::test]
    async fn the_pages_end_with_the_node() {
        let site = site().await;
        let open = TcpStream::connect(site.address).await.unwrap();
        site.tasks.stop();
        site.tasks.wait().await;
        drop(open);
        assert!(TcpStream::connect(site.address).await.is_err());
    }

    #[tokio::test]
    async fn an_address_without_port_is_refused() {
        let metrics = Metrics::new(Arc::new(ManualClock::at(0)));
        let refused = serve("localhost", metrics, Arc::default(), &Tasks::new()).await;
        assert_eq!(refused.unwrap_err().to_string(), "monedula.http.listen: 'localhost' is not host:port");
    }
}
