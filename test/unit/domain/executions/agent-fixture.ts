/** A guest agent played by the test: a link to it, and its replies, however wrong. */
import { GuestLink } from "../../../../daemon/host/guest-link/handshake.ts";
import { Link, type Stream } from "../../../../shared/agent-protocol/link.ts";
import { Channel, type ExecState, HOST_PORT } from "../../../../shared/agent-protocol/messages.ts";
import { pieceOf } from "../../../protocol/wire.ts";

export interface Asked {
  method: string;
  exec_id: string;
  after?: number;
  follow?: boolean;
}

export class PlayedAgent {
  readonly asked: Asked[] = [];
  readonly streams: Stream[] = [];
  /** Number of streams that are not closed. */
  get open(): number {
    return this.streams.filter(({ ended }) => !ended).length;
  }
  /** Cost of its messages for the host beyond their frames. */
  charged = 0;
  readonly #answer: (stream: Stream, request: Asked) => void;
  link: GuestLink;

  constructor(answer: (stream: Stream, request: Asked) => void) {
    this.#answer = answer;
    this.link = this.#connect();
  }

  /** Drops the connection; another one is there immediately. */
  drop(): void {
    const before = this.link;
    this.link = this.#connect();
    before.close("dropped");
  }

  #connect(): GuestLink {
    const ends: { host?: GuestLink; guest?: Link } = {};
    const charge = (points: number) => {
      this.charged += points;
    };
    const valve = { widen: () => {}, shut: () => {}, charge, stopReading: () => {}, open: () => {} };
    const host = new GuestLink(
      {
        write: (bytes) => {
          const copy = new Uint8Array(bytes);
          setImmediate(() => ends.guest?.receive(copy));
          return undefined;
        },
        close: () => void setImmediate(() => ends.guest?.close("the host has closed")),
      },
      valve,
      { to: HOST_PORT, from: null },
    );
    ends.host = host;
    ends.guest = new Link({
      side: "guest",
      transport: {
        write: (bytes) => {
          const copy = new Uint8Array(bytes);
          setImmediate(() => ends.host?.receive(copy));
          return undefined;
        },
        close: () => void setImmediate(() => ends.host?.close("the guest has closed")),
      },
      maxPeerStreams: 1024,
      onOpen: (stream, request) => {
        const message = request as Asked;
        this.asked.push(message);
        this.streams.push(stream);
        this.#answer(stream, message);
      },
      onHandshake: () => {},
      onClosed: () => {},
    });
    return host;
  }
}

export function stateOf(exec_id: string, more: Partial<ExecState> = {}): ExecState {
  return { ...STATE, exec_id, ...more };
}

/** Sends the first reply of an honest agent to exec_start and exec_follow. */
export function sayFollowing(stream: Stream, exec_id: string, more: Partial<ExecState> = {}): void {
  stream.say({ type: "following", execution: stateOf(exec_id, more) });
}

/** A piece of standard output. */
export async function sendPiece(stream: Stream, seq: number, text: string): Promise<void> {
  await stream.write(Channel.output, pieceOf({ channel: 1, seq, bytes: Buffer.from(text) }));
}

const STATE: Omit<ExecState, "exec_id"> = {
  number: 1,
  state: "running",
  argv: ["true"],
  cwd: "/",
  user: "root",
  pid: 1,
  timeout_ms: 1000,
  exit_code: null,
  signal: null,
  timed_out: false,
  stdout_bytes: 0,
  stderr_bytes: 0,
  oldest_seq: 1,
  last_seq: 0,
  stdin_bytes: 0,
  stdin_open: false,
  started_at_ms: 1,
  finished_at_ms: null,
  tag: "{}",
  note: "",
};
