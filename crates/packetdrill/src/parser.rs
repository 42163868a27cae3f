//! Reads tokens into a script.

mod call;
mod options;
mod packet;

use base::Duration;

use crate::event::{Action, Assertion, Event, Time};
use crate::expression::Expression;
use crate::lexer::{self, Kind, Position, Token};
use crate::script::{Script, SyntaxError};

/// Reads a script.
pub(crate) fn parse(text: &str) -> Result<Script, SyntaxError> {
    let mut reader = Reader::new(lexer::tokens(text)?);
    let options = options::read(&mut reader)?;
    let mut events: Vec<Event> = Vec::new();
    while *reader.kind() != Kind::End {
        let event = read_event(&mut reader)?;
        check_order(events.iter().rev().find_map(latest), &event)?;
        events.push(event);
    }
    if events.is_empty() {
        return Err(reader.unexpected("an event"));
    }
    Ok(Script { options, events })
}

fn latest(event: &Event) -> Option<Duration> {
    match event.time {
        Time::Absolute(at) | Time::AbsoluteRange(at, _) => Some(at),
        _ => None,
    }
}

fn check_order(before: Option<Duration>, event: &Event) -> Result<(), SyntaxError> {
    match before.zip(latest(event)) {
        Some((before, now)) if now < before => {
            Err(SyntaxError::new(event.at, format!("time goes backward, from {before} to {now}")))
        }
        _ => Ok(()),
    }
}

fn read_event(reader: &mut Reader) -> Result<Event, SyntaxError> {
    let at = reader.at();
    if *reader.kind() == Kind::Command {
        return Err(reader.no_command());
    }
    let (time, returns) = read_time(reader)?;
    let action = match reader.kind() {
        Kind::Word(_) => Action::Call(call::read(reader, returns)?),
        _ if returns.is_some() => return Err(reader.unexpected("a system call, since only those take time")),
        Kind::Sign("<") => Action::In(packet::read_inbound(reader)?),
        Kind::Sign(">") => Action::Out(packet::read_outbound(reader)?),
        Kind::Code(_) => Action::Assert(read_code(reader)?),
        Kind::Command => return Err(reader.no_command()),
        _ => return Err(reader.unexpected("`<`, `>`, a system call or `%{`")),
    };
    let ours = !matches!(action, Action::Out(_));
    if ours && matches!(time, Time::Any | Time::AbsoluteRange(..) | Time::RelativeRange(..)) {
        return Err(SyntaxError::new(
            at,
            "only what the host sends (`>`) may be at any time or in a range of times",
        ));
    }
    Ok(Event { at, time, action })
}

/// When an event happens, and when a call returns that blocks.
fn read_time(reader: &mut Reader) -> Result<(Time, Option<Duration>), SyntaxError> {
    if reader.take("*") {
        return Ok((Time::Any, None));
    }
    let relative = reader.take("+");
    if !matches!(reader.kind(), Kind::Number(_)) {
        return Err(reader.unexpected(if relative {
            "seconds"
        } else {
            "a time: `0.1`, `+0.1`, `0.1~0.2`, `+0.1~+0.2`, `0.1...0.2` or `*`"
        }));
    }
    let start = reader.seconds()?;
    if reader.take("~") {
        let end_at = reader.at();
        let plus = reader.take("+");
        if plus != relative {
            return Err(SyntaxError::new(end_at, "both ends of a range are with `+`, or none"));
        }
        let end = reader.seconds()?;
        if end < start {
            return Err(SyntaxError::new(end_at, "the range ends before it begins"));
        }
        let time = if relative { Time::RelativeRange(start, end) } else { Time::AbsoluteRange(start, end) };
        return Ok((time, None));
    }
    let time = if relative { Time::Relative(start) } else { Time::Absolute(start) };
    if !reader.take("...") {
        return Ok((time, None));
    }
    let end_at = reader.at();
    if reader.take("+") && !relative {
        return Err(SyntaxError::new(end_at, "both times of a call are with `+`, or none"));
    }
    let end = reader.seconds()?;
    if end < start {
        return Err(SyntaxError::new(end_at, "the call returns before it is made"));
    }
    Ok((time, Some(end)))
}

fn read_code(reader: &mut Reader) -> Result<Vec<Assertion>, SyntaxError> {
    let Kind::Code(inner) = reader.kind().clone() else { return Err(reader.unexpected("`%{`")) };
    reader.next();
    let mut code = Reader::new(inner);
    let mut assertions = Vec::new();
    loop {
        while code.take(";") {}
        let at = code.at();
        match code.kind() {
            Kind::End => return Ok(assertions),
            Kind::Word(word) if word == "assert" => code.next(),
            _ => return Err(code.unexpected("`assert`")),
        }
        let holds = Expression::read(&mut code)?;
        let says = if code.take(",") { Some(Expression::read(&mut code)?) } else { None };
        let ends = matches!(code.kind(), Kind::End | Kind::Sign(";")) || code.starts_line();
        if !ends {
            return Err(code.unexpected("an operator, `,`, `;` or `}%`"));
        }
        assertions.push(Assertion { at, holds, says });
    }
}

/// Where in the tokens the parser is.
pub(crate) struct Reader {
    tokens: Vec<Token>,
    next: usize,
    depth: u32,
}

/// How deep expressions and the like may be nested, so that no text overflows the stack.
const DEPTH: u32 = 64;

impl Reader {
    /// Tokens, of which the last is [`Kind::End`].
    pub(crate) const fn new(tokens: Vec<Token>) -> Self {
        Self { tokens, next: 0, depth: 0 }
    }

    fn token(&self) -> &Token {
        &self.tokens[self.next]
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.token().kind
    }

    pub(crate) fn at(&self) -> Position {
        self.token().at
    }

    /// Whether nothing stands between this token and the one before.
    pub(crate) fn is_joined(&self) -> bool {
        self.token().joined
    }

    fn starts_line(&self) -> bool {
        self.token().first
    }

    /// Whether this sign follows at once.
    pub(crate) fn is_followed_by(&self, sign: &str) -> bool {
        let next = self.tokens.get(self.next + 1);
        next.is_some_and(|token| token.joined && matches!(token.kind, Kind::Sign(it) if it == sign))
    }

    pub(crate) fn next(&mut self) {
        self.next = (self.next + 1).min(self.tokens.len() - 1);
    }

    pub(crate) fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, SyntaxError>,
    ) -> Result<T, SyntaxError> {
        if self.depth == DEPTH {
            return Err(SyntaxError::new(self.at(), "nested too deep"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    pub(crate) fn unexpected(&self, allowed: &str) -> SyntaxError {
        SyntaxError::new(self.at(), format!("{} here; allowed is {allowed}", self.kind()))
    }

    fn no_command(&self) -> SyntaxError {
        let instead = "shell commands are not run; write settings as option lines at the top of the script, \
                       `--preset=linux` and `--set recovery.scheme=\"rack\"`, or as `setsockopt`";
        SyntaxError::new(self.at(), instead)
    }

    /// Takes this sign, if it is next.
    pub(crate) fn take(&mut self, sign: &str) -> bool {
        let found = matches!(self.kind(), Kind::Sign(next) if *next == sign);
        if found {
            self.next();
        }
        found
    }

    pub(crate) fn sign(&mut self, sign: &str) -> Result<(), SyntaxError> {
        if self.take(sign) { Ok(()) } else { Err(self.unexpected(&format!("`{sign}`"))) }
    }

    /// A name, where one of `allowed` is.
    pub(crate) fn word(&mut self, allowed: &str) -> Result<String, SyntaxError> {
        let Kind::Word(word) = self.kind().clone() else { return Err(self.unexpected(allowed)) };
        self.next();
        Ok(word)
    }

    /// Takes this name, if it is next.
    pub(crate) fn take_word(&mut self, word: &str) -> bool {
        let found = matches!(self.kind(), Kind::Word(next) if next == word);
        if found {
            self.next();
        }
        found
    }

    /// A number without a fraction, `most` at most.
    pub(crate) fn whole(&mut self, most: u64) -> Result<u64, SyntaxError> {
        let allowed = || format!("a whole number, {most} at most");
        let Kind::Number(text) = self.kind() else { return Err(self.unexpected(&allowed())) };
        let number = match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => text.parse(),
        };
        let number = number.ok().filter(|&number| number <= most);
        let number = number.ok_or_else(|| self.unexpected(&allowed()))?;
        self.next();
        Ok(number)
    }

    /// Seconds with a fraction of up to nine digits.
    fn seconds(&mut self) -> Result<Duration, SyntaxError> {
        let allowed = "seconds, 1000000 at most, with nine digits of fraction at most";
        let Kind::Number(text) = self.kind() else { return Err(self.unexpected(allowed)) };
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let whole = if whole.is_empty() { Ok(0) } else { whole.parse::<u64>() };
        let nanos = format!("{fraction:0<9}").parse::<u64>().ok().filter(|_| fraction.len() <= 9);
        let Some((whole, nanos)) = whole.ok().filter(|&it| it <= 1_000_000).zip(nanos) else {
            return Err(self.unexpected(allowed));
        };
        self.next();
        Ok(Duration::from_secs(whole).saturating_add(Duration::from_nanos(nanos)))
    }
}
