/**
 * Protocol between two hosts for a forwarded session: JSON messages, and bytes of a channel's streams.
 *
 *     entry: login ──▶ owner: welcome, or refused ──▶ entry: open ──▶ owner: opened, or refused ──▶ bytes both ways ──▶ owner: ended
 */

import type { Problem } from "../../../../shared/api/errors.ts";
import type { OrgId } from "../../../../shared/ids.ts";
import { parseJson } from "../../../core/json.ts";
import type { CommandEnd } from "../../../host/guest-link/command.ts";
import type { SessionKind } from "../session-opening.ts";

/** Streams of a channel: the input of the guest, and its two outputs. */
export const Stream = { input: 0, output: 1, errors: 2 } as const;
export type Stream = (typeof Stream)[keyof typeof Stream];

interface OfChannel {
  channel: number;
}

export interface SignedText {
  algorithm: string;
  key: string;
  blob: string;
  signature: string;
}

/** Flow-control credit: these bytes of a stream were consumed, so as many more may be sent. */
type TakenBytes = OfChannel & { type: "taken"; stream: Stream; bytes: number };
type End = OfChannel & { type: "end"; stream: Stream };

export interface Login {
  type: "login";
  user: string;
  /** The client's version text. */
  client: string;
  password?: string | undefined;
  /** In base64, except the algorithm. */
  signed?: SignedText | undefined;
}

export type FromEntry =
  | Login
  | (OfChannel & { type: "open"; what: SessionKind | "forward"; fields: Record<string, unknown> })
  | (OfChannel & { type: "signal"; name: string })
  | (OfChannel & { type: "resize"; rows: number; cols: number })
  | (OfChannel & { type: "hang_up" })
  | TakenBytes
  | End;

export type FromOwner =
  | { type: "welcome"; org_id: OrgId }
  | { type: "not_welcome"; problem: Problem }
  | (OfChannel & { type: "opened"; has_errors: boolean })
  | (OfChannel & { type: "refused"; detail: string })
  | (OfChannel & { type: "ended"; end: CommandEnd })
  /** The reason, for the user; absent from an older host. */
  | (OfChannel & { type: "lost"; why?: string })
  /** The session has ended, with a sentence for the user. */
  | { type: "over"; sentence: string }
  | TakenBytes
  | End;

const HEAD_BYTES = 5;

export function frameOf(channel: number, stream: Stream, bytes: Uint8Array): Uint8Array {
  const frame = Buffer.allocUnsafe(HEAD_BYTES + bytes.byteLength);
  frame[0] = stream;
  frame.writeUInt32BE(channel, 1);
  frame.set(bytes, HEAD_BYTES);
  return frame;
}

/** Null: the frame is invalid. */
export function readFrame(frame: Uint8Array): { channel: number; stream: number; bytes: Uint8Array } | null {
  if (frame.byteLength <= HEAD_BYTES) return null;
  const channel = Buffer.from(frame.buffer, frame.byteOffset, HEAD_BYTES).readUInt32BE(1);
  return { channel, stream: frame[0] ?? 0, bytes: frame.subarray(HEAD_BYTES) };
}

/** A message of another host. Null: it is invalid. */
export function readMessage<T extends { type: string }>(text: string): T | null {
  try {
    const message: unknown = parseJson(text);
    return typeof message === "object" && message !== null && "type" in message ? (message as T) : null;
  } catch {
    return null;
  }
}
