//! Packets: `< [ce] P. 1:1001(1000) ack 1 win 1000 <nop,nop,TS val 2 ecr 1>`.

use base::wire::ip::Ecn;
use base::wire::tcp::{Flags, MAX_SACK_BLOCKS};

use super::Reader;
use crate::lexer::Kind;
use crate::option::TcpOption;
use crate::script::SyntaxError;
use crate::segment::{ECN, Expectation, FLAGS, OPTIONS_LIMIT, Segment};

/// A segment of the peer's.
pub(super) fn read_inbound(reader: &mut Reader) -> Result<Segment, SyntaxError> {
    reader.sign("<")?;
    let at = reader.at();
    let read = read(reader)?;
    let ecn = read.ecn.unwrap_or_else(|| vec![Ecn::NotEct]);
    let [ecn] = ecn[..] else { return Err(SyntaxError::new(at, "an inbound packet has one ECN field")) };
    let Some(options) = read.options else {
        return Err(SyntaxError::new(at, "`<...>` is for outbound packets; allowed is a list of options"));
    };
    let Expectation { flags, seq, len, ack, window, .. } = read;
    Ok(Segment { ecn, flags, seq, len, ack, window: window.unwrap_or(0), options })
}

/// What is expected of a segment of the host's.
pub(super) fn read_outbound(reader: &mut Reader) -> Result<Expectation, SyntaxError> {
    reader.sign(">")?;
    read(reader)
}

fn read(reader: &mut Reader) -> Result<Expectation, SyntaxError> {
    let ecn = if reader.take("[") { Some(read_ecn(reader)?) } else { None };
    let flags = read_flags(reader)?;
    let (seq, len) = read_numbers(reader)?;
    let mut read = Expectation { ecn, flags, seq, len, ack: 0, window: None, options: Some(Vec::new()) };
    let ack_at = reader.at();
    let has_ack = reader.take_word("ack");
    if has_ack {
        read.ack = reader.whole(u32::MAX.into())? as u32;
    }
    if has_ack != flags.has(Flags::ACK) {
        let message = if has_ack { "`ack` without the flag `.`" } else { "the flag `.` without `ack`" };
        return Err(SyntaxError::new(ack_at, message));
    }
    if reader.take_word("win") {
        read.window = Some(reader.whole(u16::MAX.into())? as u16);
    }
    if reader.take("<") {
        read.options = read_options(reader)?;
    } else if !is_over(reader) {
        return Err(reader.unexpected("`win`, `<` with options, or the next event"));
    }
    Ok(read)
}

/// Whether what follows begins another event.
fn is_over(reader: &Reader) -> bool {
    matches!(reader.kind(), Kind::Number(_) | Kind::End | Kind::Command | Kind::Sign("+" | "*"))
}

fn read_ecn(reader: &mut Reader) -> Result<Vec<Ecn>, SyntaxError> {
    let names: Vec<&str> = ECN.iter().map(|(name, _)| *name).collect();
    let allowed = names.join(", ");
    let wrong = reader.unexpected(&allowed);
    let word = reader.word(&allowed)?;
    let (_, ecn) = ECN.iter().find(|(name, _)| *name == word).ok_or(wrong)?;
    reader.sign("]")?;
    Ok(ecn.to_vec())
}

fn read_flags(reader: &mut Reader) -> Result<Flags, SyntaxError> {
    let letters: String = FLAGS.iter().map(|(letter, _)| *letter).collect();
    let wrong = |reader: &Reader| reader.unexpected(&format!("flags of {letters}, or `-` for none"));
    if reader.take("-") {
        return Ok(Flags(0));
    }
    let mut flags = Flags(0);
    let mut first = true;
    loop {
        let text = match reader.kind() {
            _ if !first && !reader.is_joined() => break,
            Kind::Word(word) => word.clone(),
            Kind::Sign(".") => ".".to_owned(),
            _ if first => return Err(wrong(reader)),
            _ => break,
        };
        for letter in text.chars() {
            let known = FLAGS.iter().find(|(known, _)| *known == letter);
            let (_, flag) = known.ok_or_else(|| wrong(reader))?;
            flags = flags | *flag;
        }
        reader.next();
        first = false;
    }
    Ok(flags)
}

/// `1:1001(1000)`.
fn read_numbers(reader: &mut Reader) -> Result<(u32, u32), SyntaxError> {
    let start = reader.whole(u32::MAX.into())? as u32;
    reader.sign(":")?;
    let end_at = reader.at();
    let end = reader.whole(u32::MAX.into())? as u32;
    reader.sign("(")?;
    let len = reader.whole(MOST_DATA)? as u32;
    reader.sign(")")?;
    if start.wrapping_add(len) != end {
        let message = format!("{start}:{end} is not {len} bytes; allowed is {}", start.wrapping_add(len));
        return Err(SyntaxError::new(end_at, message));
    }
    Ok((start, len))
}

/// Bytes of data that fit an IPv4 packet with all options.
const MOST_DATA: u64 = 65_535 - 20 - 60;

/// The list after `<`; `None` for `...`.
fn read_options(reader: &mut Reader) -> Result<Option<Vec<TcpOption>>, SyntaxError> {
    let at = reader.at();
    if reader.take("...") {
        reader.sign(">")?;
        return Ok(None);
    }
    let mut options = Vec::new();
    loop {
        options.push(read_option(reader)?);
        if reader.take(">") {
            break;
        }
        if !reader.take(",") {
            return Err(reader.unexpected("`,` or `>`"));
        }
    }
    let mut bytes = Vec::new();
    options.iter().for_each(|option| option.emit(&mut bytes));
    if bytes.len() > OPTIONS_LIMIT {
        return Err(SyntaxError::new(at, format!("{} bytes of options; {OPTIONS_LIMIT} fit", bytes.len())));
    }
    // As they come back from the wire.
    let padding = bytes.len().next_multiple_of(4) - bytes.len();
    options.extend(core::iter::repeat_n(TcpOption::End, padding));
    Ok(Some(options))
}

fn read_option(reader: &mut Reader) -> Result<TcpOption, SyntaxError> {
    let allowed = "mss, wscale, sackOK, sack, TS, nop, eol or `...`";
    let wrong = reader.unexpected(allowed);
    Ok(match reader.word(allowed)?.as_str() {
        "mss" => TcpOption::Mss(reader.whole(u16::MAX.into())? as u16),
        "wscale" => TcpOption::WindowScale(reader.whole(u8::MAX.into())? as u8),
        "sackOK" => TcpOption::SackPermitted,
        "nop" => TcpOption::Nop,
        "eol" => TcpOption::End,
        "TS" => {
            let value = read_named(reader, "val")?;
            TcpOption::Timestamps { value, echo: read_named(reader, "ecr")? }
        }
        "sack" => {
            let mut blocks = Vec::new();
            while blocks.is_empty()
                || (blocks.len() < MAX_SACK_BLOCKS && matches!(reader.kind(), Kind::Number(_)))
            {
                let start = reader.whole(u32::MAX.into())? as u32;
                reader.sign(":")?;
                blocks.push((start, reader.whole(u32::MAX.into())? as u32));
            }
            TcpOption::Sack(blocks)
        }
        _ => return Err(wrong),
    })
}

fn read_named(reader: &mut Reader, name: &str) -> Result<u32, SyntaxError> {
    if !reader.take_word(name) {
        return Err(reader.unexpected(&format!("`{name}`")));
    }
    reader.whole(u32::MAX.into()).map(|value| value as u32)
}
