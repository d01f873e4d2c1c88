/**
 * Plays a screen recording: its pieces are passed to noVNC as if a server sent them, each at its time. Seeking back restarts from the
 * beginning at full speed.
 */
import type { Signal } from "@preact/signals";
import { PIECE_HEADER_BYTES } from "../../../../shared/agent-protocol/recording.ts";

export interface Played {
  atMs: number;
  isPlaying: boolean;
  /** The recording is invalid at this point. */
  isBroken: boolean;
}

export interface Player {
  play(): void;
  pause(): void;
  seek(ms: number): void;
}

interface Piece {
  ms: number;
  bytes: Uint8Array<ArrayBuffer>;
}

const TICK_MS = 50;
/** RFB greeting of a server before its ServerInit: version, one security type (none), and success. */
const GREETING = [new TextEncoder().encode("RFB 003.008\n"), Uint8Array.of(1, 1), Uint8Array.of(0, 0, 0, 0)];

/** Draws into `box` until `left`. */
export async function playerOf(
  data: ArrayBuffer,
  lengthMs: number,
  box: HTMLElement,
  played: Signal<Played>,
  left: AbortSignal,
): Promise<Player> {
  const { default: RFB } = await import("@novnc/novnc");
  const pieces = [...piecesOf(data)];
  let screen: Screen | null = null;
  let next = 0;

  const begin = () => {
    screen?.end();
    const newScreen = new Screen(RFB, box, () => {
      if (screen === newScreen) played.value = { ...played.value, isPlaying: false, isBroken: true };
    });
    screen = newScreen;
    for (const bytes of GREETING) screen.say(bytes);
    next = 0;
  };
  const showUntil = (ms: number) => {
    for (let piece = pieces[next]; piece && piece.ms <= ms; piece = pieces[++next]) screen?.say(piece.bytes);
  };
  const seek = (ms: number) => {
    if (ms < played.value.atMs || screen === null) begin();
    showUntil(ms);
    played.value = { ...played.value, atMs: ms };
  };
  let before = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    const { atMs, isPlaying } = played.value;
    if (isPlaying && !document.hidden) {
      const ms = Math.min(lengthMs, atMs + now - before);
      showUntil(ms);
      played.value = { ...played.value, atMs: ms, isPlaying: ms < lengthMs && !played.value.isBroken };
    }
    before = now;
  }, TICK_MS);
  left.addEventListener(
    "abort",
    () => {
      clearInterval(timer);
      screen?.end();
    },
    { once: true },
  );
  seek(0);
  return {
    play: () => {
      if (played.value.atMs >= lengthMs) seek(0);
      played.value = { ...played.value, isPlaying: true };
    },
    pause: () => {
      played.value = { ...played.value, isPlaying: false };
    },
    seek,
  };
}

type Rfb = typeof import("@novnc/novnc")["default"];

/** noVNC connected to a server that sends only the recording. */
class Screen {
  readonly #place: HTMLElement;
  readonly #rfb: InstanceType<Rfb>;
  readonly #channel: Channel;
  #isOver = false;

  constructor(RFB: Rfb, box: HTMLElement, broke: () => void) {
    this.#place = box.appendChild(document.createElement("div"));
    this.#channel = new Channel();
    this.#rfb = new RFB(this.#place, this.#channel, { shared: true });
    this.#rfb.viewOnly = true;
    this.#rfb.scaleViewport = true;
    this.#rfb.background = "transparent";
    this.#rfb.addEventListener("disconnect", () => {
      if (!this.#isOver) broke();
    });
  }

  say(bytes: Uint8Array<ArrayBuffer>): void {
    this.#channel.hear(bytes);
  }

  end(): void {
    this.#isOver = true;
    this.#rfb.disconnect();
    this.#place.remove();
  }
}

/** Replacement of the WebSocket of noVNC. */
class Channel {
  readonly protocol = "binary";
  binaryType: BinaryType = "arraybuffer";
  readyState = "open";
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: ArrayBuffer }) => void) | null = null;
  onclose: ((event: { code: number; reason: string }) => void) | null = null;
  onerror: (() => void) | null = null;

  hear({ buffer, byteOffset, byteLength }: Uint8Array<ArrayBuffer>): void {
    this.onmessage?.({ data: buffer.slice(byteOffset, byteOffset + byteLength) });
  }

  /** There is no server to receive it. */
  send(): void {}

  close(): void {
    this.readyState = "closed";
    // Asynchronously, as a WebSocket does: noVNC waits for the event after this call.
    queueMicrotask(() => this.onclose?.({ code: 1000, reason: "" }));
  }
}

/** A piece that is truncated at the end is left out. */
function* piecesOf(data: ArrayBuffer): Generator<Piece> {
  const view = new DataView(data);
  for (let at = 0; at + PIECE_HEADER_BYTES <= data.byteLength; ) {
    const [ms, length] = [view.getUint32(at), view.getUint32(at + 4)];
    at += PIECE_HEADER_BYTES;
    if (at + length > data.byteLength) return;
    yield { ms, bytes: new Uint8Array(data, at, length) };
    at += length;
  }
}
