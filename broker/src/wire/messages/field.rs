//! How the types of fields stand on the wire, in the old layout and in the flexible one (KIP-482).

use bytes::{BufMut, Bytes};
use kafka_protocol::messages::{GroupId, TopicName};
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::protocol::buf::ByteBuf;
use uuid::Uuid;

use crate::wire::primitive::{PrimitiveError, unsigned_varint};

/// The version of a message, and whether it is one of its flexible versions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub(super) version: i16,
    pub(super) flexible: bool,
}

/// Why a field cannot be read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The bytes end too early, or are no such value.
    #[error(transparent)]
    Primitive(#[from] PrimitiveError),
    /// Null where the version knows none.
    #[error("a field is null that cannot be null at this version")]
    Null,
    /// A negative length, or more elements than there are bytes.
    #[error("a length of {length} with {remaining} bytes left")]
    Length {
        /// What the bytes said.
        length: i64,
        /// Bytes after it.
        remaining: usize,
    },
    /// A value whose length does not fit its length field.
    #[error("a value of length {length} is too long")]
    TooLong {
        /// Of the value.
        length: usize,
    },
}

/// A value that stands in messages.
pub(super) trait Field: Sized {
    /// Takes the value from the front.
    fn read<B: ByteBuf>(buf: &mut B, layout: Layout) -> Result<Self, FieldError>;
    /// Appends the value.
    fn write<B: BufMut>(&self, buf: &mut B, layout: Layout) -> Result<(), FieldError>;
    /// Bytes that `write` appends.
    fn size(&self, layout: Layout) -> usize;
    /// True for the null of a type that has one.
    fn is_null(&self) -> bool {
        false
    }
}

macro_rules! number {
    ($($type:ty, $get:ident, $put:ident;)*) => {$(
        impl Field for $type {
            fn read<B: ByteBuf>(buf: &mut B, _: Layout) -> Result<Self, FieldError> {
                Ok(buf.$get().map_err(|_| PrimitiveError::Truncated)?)
            }

            fn write<B: BufMut>(&self, buf: &mut B, _: Layout) -> Result<(), FieldError> {
                buf.$put(*self);
                Ok(())
            }

            fn size(&self, _: Layout) -> usize {
                size_of::<$type>()
            }
        }
    )*};
}

number! {
    i8, try_get_i8, put_i8;
    i16, try_get_i16, put_i16;
    i32, try_get_i32, put_i32;
    i64, try_get_i64, put_i64;
    u128, try_get_u128, put_u128;
}

impl Field for bool {
    fn read<B: ByteBuf>(buf: &mut B, layout: Layout) -> Result<Self, FieldError> {
        Ok(i8::read(buf, layout)? != 0)
    }

    fn write<B: BufMut>(&self, buf: &mut B, layout: Layout) -> Result<(), FieldError> {
        i8::from(*self).write(buf, layout)
    }

    fn size(&self, _: Layout) -> usize {
        1
    }
}

impl Field for Uuid {
    fn read<B: ByteBuf>(buf: &mut B, layout: Layout) -> Result<Self, FieldError> {
        u128::read(buf, layout).map(Uuid::from_u128)
    }

    fn write<B: BufMut>(&self, buf: &mut B, layout: Layout) -> Result<(), FieldError> {
        self.as_u128().write(buf, layout)
    }

    fn size(&self, _: Layout) -> usize {
        16
    }
}

impl Field for Option<StrBytes> {
    fn read<B: ByteBuf>(buf: &mut B, layout: Layout) -> Result<Self, FieldError> {
        let length = if layout.flexible { compact_length(buf)? } else { i64::from(i16::read(buf, layout)?) };
        let Some(length) = length_or_null(length, buf.remaining())? else { return Ok(None) };
        let bytes = buf.try_get_bytes(length).map_err(|_| PrimitiveError::Truncated)?;
        Ok(Some(StrBytes::try_from(bytes).map_err(|_| PrimitiveError::NotText)?))
    }

    fn write<B: BufMut>(&self, buf: &mut B, layout: Layout) -> Result<(), FieldError> {
        match (self, layout.flexible) {
            (None, true) => write_varint(buf, 0)?,
            (None, false) => buf.put_i16(-1),
            (Some(text), true) => write_varint(buf, text.len() + 1)?,
            (Some(text), false) => {
                buf.put_i16(i16::try_from(text.len()).map_err(|_| FieldError::TooLong { length: text.len() })?);
            }
        }
        buf.put_slice(self.as_deref().unwrap_or_default().as_bytes());
        Ok(())
    }

    fn size(&self, layout: Layout) -> usize {
        self.as_ref().map_or_else(|| null_size(layout, 2), |text| text.size(layout))
    }

    fn is_null(&self) -> bool {
        self.is_none()
    }
}

impl Field for StrBytes {
    fn read<B: ByteBuf>(buf: &mut B, layout: Layout) -> Result<Self, FieldError> {
        Option::<StrBytes>::read(buf, layout)?.ok_or(FieldError::Null)
    }

    fn write<B: BufMut>(&self, buf: &mut B, layout: Layout) -> Result<(), FieldError> {
        Some(self.clone()).write(buf, layout)
    }

    fn size(&self, layout: Layout) -> usize {
        self.len() + if layout.flexible { varint_size(self.len() + 1) } else { 2 }
    }
}

macro_rules! name {
    ($($type:ident),*) => {$(
        impl Field for $type {
            fn read<B: ByteBuf>(buf: &mut B, layout: Layout) -> Result<Self, FieldError> {
                StrBytes::read(buf, layout).map($type)
            }

            fn write<B: BufMut>(&self, buf: &mut B, layout: Layout) -> Result<(), FieldError> {
                self.0.write(buf, layout)
            }

            fn size(&self, layout: Layout) -> usize {
                self.0.size(layout)
            }
        }
    )*};
}

name!(GroupId, TopicName);

impl<T: Field> Field for Option<Vec<T>> {
    fn read<B: ByteBuf>(buf: &mut B, layout: Layout) -> Result<Self, FieldError> {
        let length = if layout.flexible { compact_length(buf)? } else { i64::from(i32::read(buf, layout)?) };
        // No element is shorter than a byte, so a count greater than the bytes left is a lie. The vector still grows
        // only with elements that were read, as they take more memory than bytes.
        let Some(count) = length_or_null(length, buf.remaining())? else { return Ok(None) };
        let mut elements = Vec::new();
        for _ in 0..count {
            elements.push(T::read(buf, layout)?);
        }
        Ok(Some(elements))
    }

    fn write<B: BufMut>(&self, buf: &mut B, layout: Layout) -> Result<(), FieldError> {
        match self {
            Some(elements) => write_elements(elements, buf, layout),
            None if layout.flexible => write_varint(buf, 0),
            None => (-1i32).write(buf, layout),
        }
    }

    fn size(&self, layout: Layout) -> usize {
        self.as_ref().map_or_else(|| null_size(layout, 4), |elements| elements.size(layout))
    }

    fn is_null(&self) -> bool {
        self.is_none()
    }
}

impl<T: Field> Field for Vec<T> {
    fn read<B: ByteBuf>(buf: &mut B, layout: Layout) -> Result<Self, FieldError> {
        Option::<Vec<T>>::read(buf, layout)?.ok_or(FieldError::Null)
    }

    fn write<B: BufMut>(&self, buf: &mut B, layout: Layout) -> Result<(), FieldError> {
        write_elements(self, buf, layout)
    }

    fn size(&self, layout: Layout) -> usize {
        let count = if layout.flexible { varint_size(self.len() + 1) } else { 4 };
        count + self.iter().map(|element| element.size(layout)).sum::<usize>()
    }
}

/// Bytes of a null, whose length field has `fixed` bytes in the old layout.
fn null_size(layout: Layout, fixed: usize) -> usize {
    if layout.flexible { 1 } else { fixed }
}

fn write_elements<T: Field, B: BufMut>(elements: &[T], buf: &mut B, layout: Layout) -> Result<(), FieldError> {
    let length = elements.len();
    if layout.flexible {
        write_varint(buf, length + 1)?;
    } else {
        i32::try_from(length).map_err(|_| FieldError::TooLong { length })?.write(buf, layout)?;
    }
    elements.iter().try_for_each(|element| element.write(buf, layout))
}

/// A length of the flexible layout: one more than it, or 0 for null, which becomes -1.
fn compact_length<B: ByteBuf>(buf: &mut B) -> Result<i64, FieldError> {
    Ok(i64::from(unsigned_varint(buf)?) - 1)
}

/// `None` for -1.
fn length_or_null(length: i64, remaining: usize) -> Result<Option<usize>, FieldError> {
    match usize::try_from(length) {
        Ok(length) if length <= remaining => Ok(Some(length)),
        Err(_) if length == -1 => Ok(None),
        Ok(_) | Err(_) => Err(FieldError::Length { length, remaining }),
    }
}

/// Appends an UNSIGNED_VARINT.
pub(super) fn write_varint<B: BufMut>(buf: &mut B, value: usize) -> Result<(), FieldError> {
    let mut rest = u32::try_from(value).map_err(|_| FieldError::TooLong { length: value })?;
    while rest >= 0x80 {
        buf.put_u8(rest as u8 | 0x80);
        rest >>= 7;
    }
    buf.put_u8(rest as u8);
    Ok(())
}

/// Bytes of an UNSIGNED_VARINT.
pub(super) fn varint_size(value: usize) -> usize {
    (usize::BITS - (value | 1).leading_zeros()).div_ceil(7) as usize
}

/// Takes the tagged fields at the end of a struct, and hands each to `take`.
pub(super) fn read_tagged<B: ByteBuf>(
    buf: &mut B,
    mut take: impl FnMut(u32, Bytes) -> Result<(), FieldError>,
) -> Result<(), FieldError> {
    let count = unsigned_varint(buf)?;
    for _ in 0..count {
        let tag = unsigned_varint(buf)?;
        let length = unsigned_varint(buf)?;
        let bytes = buf.try_get_bytes(length as usize).map_err(|_| PrimitiveError::Truncated)?;
        take(tag, bytes)?;
    }
    Ok(())
}

/// Appends one tagged field.
#[cfg_attr(not(test), expect(dead_code, reason = "no message defined here has a tagged field yet"))]
pub(super) fn write_tagged<T: Field, B: BufMut>(
    buf: &mut B,
    tag: usize,
    value: &T,
    layout: Layout,
) -> Result<(), FieldError> {
    write_varint(buf, tag)?;
    write_varint(buf, value.size(layout))?;
    value.write(buf, layout)
}

/// Bytes that `write_tagged` appends.
#[cfg_attr(not(test), expect(dead_code, reason = "no message defined here has a tagged field yet"))]
pub(super) fn tagged_size<T: Field>(tag: usize, value: &T, layout: Layout) -> usize {
    let size = value.size(layout);
    varint_size(tag) + varint_size(size) + size
}
