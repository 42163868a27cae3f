//! What `longhaul gateway top` draws.

use gateway::history::{History, MOMENTS, Moment, Peer};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType, Paragraph, Row, Table, TableState};

/// What is shown besides the history.
#[derive(Debug, Default)]
pub(super) struct Screen {
    /// The number of the peer whose curves are drawn.
    pub(super) chosen: usize,
    /// Why the gateway does not answer.
    pub(super) trouble: Option<String>,
}

/// A value over time; nothing while it is not known.
type Of = fn(&Peer) -> Option<f64>;

/// A curve: its name, colour and value.
type Curve = (&'static str, Color, Of);

/// Columns of the table: heading, width, and how wide a terminal shows it.
const COLUMNS: [(&str, u16, u16); 10] = [
    ("peer", 12, 0),
    ("state", 20, 0),
    ("sent", 12, 0),
    ("received", 12, 0),
    ("carries", 12, 76),
    ("lost", 7, 84),
    ("rtt", 8, 94),
    ("queue", 8, 102),
    ("conns", 6, 110),
    ("address", 24, 140),
];

/// Rows of the table at most, so that there is room for curves.
const MOST_ROWS: u16 = 10;

impl Screen {
    pub(super) fn draw(&mut self, frame: &mut Frame<'_>, history: &History) {
        let Some(last) = history.moments().next_back() else {
            let reason = self.trouble.as_deref().unwrap_or("waiting for the gateway");
            frame.render_widget(Paragraph::new(reason), frame.area());
            return;
        };
        self.chosen = self.chosen.min(last.peers.len().saturating_sub(1));
        let rows = (last.peers.len() as u16 + 1).clamp(2, MOST_ROWS + 1);
        let [head, table, curves] =
            Layout::vertical([Constraint::Length(2), Constraint::Length(rows), Constraint::Min(0)])
                .areas(frame.area());
        frame.render_widget(Paragraph::new(self.head(last)), head);
        self.draw_peers(frame, table, last);
        let [left, right] = Layout::horizontal([Constraint::Fill(1); 2]).areas(curves);
        let [upper, lower] = Layout::vertical([Constraint::Fill(1); 2]).areas(right);
        let series =
            Series { history, name: last.peers.get(self.chosen).map(|peer| &*peer.name), now: last.at };
        series.draw(
            frame,
            left,
            "traffic",
            rate,
            &[
                ("path carries", Color::DarkGray, |peer| peer.carries),
                ("received", Color::Yellow, |peer| Some(peer.received)),
                ("sent", Color::Cyan, |peer| Some(peer.sent)),
            ],
        );
        series.draw(
            frame,
            upper,
            "delay",
            millis,
            &[
                ("queueing", Color::Yellow, |peer| peer.queueing),
                ("round trip", Color::Cyan, |peer| peer.round_trip),
            ],
        );
        series.draw(frame, lower, "loss of the path", percent, &[("lost", Color::Red, |peer| peer.loss)]);
    }

    fn head(&self, last: &Moment) -> Vec<Line<'static>> {
        let connected = last.peers.iter().filter(|peer| peer.state == "connected").count();
        let more = if last.more > 0 { format!(" (and {} more)", last.more) } else { String::new() };
        let told = format!(
            "{}: {connected} of {} peers connected{more}, up for {}, {} in packets and connections",
            last.device,
            last.peers.len(),
            span(last.uptime),
            scaled(last.memory as f64, "B")
        );
        let keys = match &self.trouble {
            Some(reason) => Span::styled(format!("the gateway does not answer: {reason}"), Color::Red),
            None => Span::styled("arrows choose a peer, q ends", Color::DarkGray),
        };
        vec![Line::styled(told, Modifier::BOLD), Line::from(keys)]
    }

    fn draw_peers(&self, frame: &mut Frame<'_>, area: Rect, last: &Moment) {
        // What a narrow terminal has no room for.
        let columns = COLUMNS.iter().filter(|(_, _, least)| *least <= area.width);
        let (widths, heading): (Vec<_>, Vec<_>) =
            columns.map(|(name, width, _)| (Constraint::Length(*width), *name)).unzip();
        let rows = last.peers.iter().map(|peer| {
            let colour = if peer.state == "connected" { Color::Green } else { Color::Red };
            let known =
                |value: Option<f64>, say: fn(f64) -> String| value.map_or_else(|| "-".to_owned(), say);
            let cells = [
                Span::raw(peer.name.clone()),
                Span::styled(format!("{} {}", peer.state, span(peer.state_seconds)), colour),
                Span::raw(rate(peer.sent)),
                Span::raw(rate(peer.received)),
                Span::raw(known(peer.carries, rate)),
                Span::raw(known(peer.loss, percent)),
                Span::raw(known(peer.round_trip, millis)),
                Span::raw(scaled(peer.queued as f64, "B")),
                Span::raw(peer.connections.to_string()),
                Span::raw(peer.address.clone()),
            ];
            let shown = cells.into_iter().zip(COLUMNS).filter(|(_, (_, _, least))| *least <= area.width);
            Row::new(shown.map(|(cell, _)| cell))
        });
        let table = Table::new(rows, widths)
            .header(Row::new(heading).style(Color::DarkGray))
            .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
        frame.render_stateful_widget(table, area, &mut TableState::new().with_selected(Some(self.chosen)));
    }
}

/// The moments of a peer.
struct Series<'a> {
    history: &'a History,
    name: Option<&'a str>,
    now: f64,
}

impl Series<'_> {
    fn points(&self, of: Of) -> Vec<(f64, f64)> {
        let moments = self.history.moments();
        let found = moments.filter_map(|moment| {
            let peer = moment.peers.iter().find(|peer| Some(&*peer.name) == self.name)?;
            Some((moment.at - self.now, of(peer)?))
        });
        found.collect()
    }

    fn draw(&self, frame: &mut Frame<'_>, area: Rect, title: &str, say: fn(f64) -> String, curves: &[Curve]) {
        let points: Vec<_> = curves.iter().map(|(_, _, of)| self.points(*of)).collect();
        let most = points.iter().flatten().map(|(_, value)| *value).fold(0.0, f64::max);
        let top = if most > 0.0 { most * 1.05 } else { 1.0 };
        // The names with what they are now are the legend; the last is drawn on top, and named first.
        let mut words = vec![Span::raw(format!(" {title} "))];
        for ((name, colour, _), points) in curves.iter().zip(&points).rev() {
            let now = points.last().map_or_else(|| "-".to_owned(), |(_, value)| say(*value));
            words.push(Span::styled(format!(" {name} {now} "), *colour));
        }
        let datasets = curves.iter().zip(&points).map(|((_, colour, _), points)| {
            Dataset::default().marker(Marker::Braille).graph_type(GraphType::Line).style(*colour).data(points)
        });
        let longest = MOMENTS as f64;
        let level = |part: f64| if most > 0.0 || part == 0.0 { say(part * top) } else { String::new() };
        let chart = Chart::new(datasets.collect())
            .block(Block::bordered().title(Line::from(words)).border_style(Color::DarkGray))
            .x_axis(Axis::default().bounds([-longest, 0.0]).labels(["10 min ago", "5 min", "now"]))
            .y_axis(Axis::default().bounds([0.0, top]).labels([level(0.0), level(0.5), level(1.0)]));
        frame.render_widget(chart, area);
    }
}

fn scaled(value: f64, unit: &str) -> String {
    let prefixes = [(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];
    let (size, prefix) = prefixes.into_iter().find(|(size, _)| value >= *size).unwrap_or((1.0, ""));
    let value = value / size;
    let digits = if value >= 100.0 || value == 0.0 || (size == 1.0 && unit == "B") { 0 } else { 1 };
    format!("{value:.digits$} {prefix}{unit}")
}

fn rate(value: f64) -> String {
    scaled(value, "bit/s")
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

fn millis(seconds: f64) -> String {
    format!("{:.0} ms", seconds * 1e3)
}

fn span(seconds: f64) -> String {
    let seconds = seconds as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::json;

    use super::*;

    fn drawn(screen: &mut Screen, history: &History, width: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, 30)).unwrap();
        terminal.draw(|frame| screen.draw(frame, history)).unwrap();
        terminal.backend().to_string()
    }

    fn history() -> History {
        let mut history = History::default();
        for second in 0..60_u64 {
            let peer = |name: &str, state: &str, sent: u64| {
                json!({
                    "name": name, "public_key": name, "peer": "192.0.2.9:51900", "state": state, "state_seconds": 75.0,
                    "traffic": { "bytes_sent": sent * second, "bytes_received": 0 },
                    "path": { "carries": 20_000_000, "loss": 0.021, "round_trip_seconds": 0.6 },
                })
            };
            let peers = [peer("hub", "connected", 1_000_000), peer("other", "silent", 0)];
            history
                .take(&json!({ "device": "sat0", "uptime_seconds": second, "peers": peers }), second as f64);
        }
        history
    }

    #[test]
    fn peers_and_their_curves_are_drawn() {
        let history = history();
        let mut screen = Screen { chosen: 9, trouble: None };
        let text = drawn(&mut screen, &history, 140);
        assert_eq!(screen.chosen, 1, "there are two");
        for part in [
            "sat0: 1 of 2 peers connected, up for 59 s",
            "connected 1 min 15 s",
            "8.0 Mbit/s",
            "20.0 Mbit/s",
            "2.1 %",
            "600 ms",
        ] {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
        screen.chosen = 0;
        let text = drawn(&mut screen, &history, 140);
        let has_curve = |text: &str| text.chars().any(|c| ('\u{2801}'..='\u{28ff}').contains(&c));
        assert!(text.contains("traffic  sent 8.0 Mbit/s") && has_curve(&text), "{text}");
    }

    #[test]
    fn nothing_and_trouble_are_told_and_small_terminals_are_no_trouble() {
        let mut screen = Screen { chosen: 0, trouble: None };
        assert!(drawn(&mut screen, &History::default(), 80).contains("waiting for the gateway"));
        screen.trouble = Some("it did not answer".to_owned());
        assert!(
            drawn(&mut screen, &history(), 80).contains("the gateway does not answer: it did not answer")
        );
        drawn(&mut screen, &history(), 3);
        screen.trouble = None;
        let narrow = drawn(&mut screen, &history(), 80);
        for whole in ["connected 1 min 15 s", "received", "8.0 Mbit/s", "20.0 Mbit/s"] {
            assert!(narrow.contains(whole), "no {whole:?} in\n{narrow}");
        }
        let none = json!({ "device": "sat0", "uptime_seconds": 1, "peers": [] });
        let mut history = History::default();
        history.take(&none, 0.0);
        assert!(drawn(&mut screen, &history, 80).contains("0 of 0 peers"));
    }
}
