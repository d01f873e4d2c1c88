/** The part of a file that a request selects: the Range header (RFC 9110, section 14) or offset and length. */
import { ServiceError } from "../../../core/service-error.ts";

export interface FileRange {
  offset: number;
  length: number;
  /** The caller requested a part, and it is not empty. */
  partial: boolean;
}

const ONE_RANGE = /^bytes=\s*(\d*)\s*-\s*(\d*)\s*$/i;

/** Several ranges, other units and invalid headers select the whole file. Throws range_not_satisfiable. */
export function rangeOf(header: string | null, size: number): FileRange {
  const whole = { offset: 0, length: size, partial: false };
  const [match, first = "", last = ""] = header?.match(ONE_RANGE) ?? [];
  if (match === undefined || (first === "" && last === "")) return whole;
  if (first === "") return part(Math.max(0, size - Number(last)), size, size);
  if (last !== "" && Number(last) < Number(first)) return whole;
  return part(Number(first), last === "" ? size : Math.min(Number(last) + 1, size), size);
}

/** An offset past the end is refused; at the end the part is empty, which is how a growing file is followed. */
export function partOf(offset: number, length: number, size: number): FileRange {
  if (offset > size) throw outside(size);
  const taken = Math.min(length, size - offset);
  return { offset, length: taken, partial: taken > 0 };
}

function part(start: number, end: number, size: number): FileRange {
  if (start >= end) throw outside(size);
  return { offset: start, length: end - start, partial: true };
}

function outside(size: number): ServiceError {
  return new ServiceError("range_not_satisfiable", {
    detail: `The file has ${size} bytes.`,
    details: { size_bytes: size },
  });
}
