/**
 * Simulated guest agent: it speaks the real protocol over the socket of the guest's vsock port, and reconnects when the daemon has exited.
 * `true`, and any other requested command, exits immediately; a followed execution has endless output, and if it is named
 * "flood", as many of the smallest frames as the daemon accepts.
 */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { encodeFrame, FrameType } from "../../../shared/agent-protocol/frame.ts";
import { Link, type Stream } from "../../../shared/agent-protocol/link.ts";
import {
  Channel,
  type ExecFollowing,
  type ExecReport,
  type ExecState,
  GENERATION,
  type Hello,
  HOST_PORT,
  type Ready,
  type RoomCallRequest,
  StreamErrorCode,
  type TerminalAttached,
} from "../../../shared/agent-protocol/messages.ts";
import { pieceHeader } from "../../../shared/agent-protocol/pieces.ts";

/** As long as a refused agent waits at most. */
const DIAL_AGAIN_MS = 200;
const MAX_HOST_STREAMS = 256;
/** Of an output that is followed: a line of a build, so to speak. */
const PIECE_BYTES = 1024;
const PIECES_EVERY_MS = 100;
/** Followed, it floods. */
const FLOOD = "flood";
const PING = encodeFrame(FrameType.ping, 0, new Uint8Array(0));
/** Between the pieces. */
const PINGS = Buffer.concat(Array.from({ length: 500 }, () => PING));
/** Pieces of one byte between two bursts. */
const TINY_PIECES = 500;

export class PlayedAgent {
  readonly #path: string;
  readonly #guestCid: number;
  readonly #nonce: string;
  #link: Link | null = null;
  #write: (bytes: Uint8Array) => Promise<void> | undefined = () => undefined;
  #executions = 0;

  constructor(path: string, { guest_cid, nonce }: { guest_cid: number; nonce: string }) {
    this.#path = `${path}_${HOST_PORT}`;
    this.#guestCid = guest_cid;
    this.#nonce = nonce;
  }

  /** Never returns. */
  async keepLinked(): Promise<never> {
    for (;;) {
      await this.#serve().catch(() => {});
      this.#link = null;
      await sleep(DIAL_AGAIN_MS);
    }
  }

  /** Sends a message in its room, as a program in the guest does. */
  async send(roomId: string, agentId: string): Promise<void> {
    if (!this.#link) return;
    const body = Buffer.from(JSON.stringify({ source: agentId, topic: "none", payload: { n: 1 } }));
    const call: RoomCallRequest = {
      method: "room_call",
      http_method: "POST",
      path: `/v1/rooms/${roomId}/messages`,
      headers: { "content-type": "application/json", "content-length": String(body.byteLength) },
    };
    const stream = this.#link.open(call);
    stream.finished.catch(() => {});
    await stream.write(Channel.stdin, body);
    stream.endChannel(Channel.stdin);
    for await (const _ of stream.read(Channel.stdout));
  }

  /** One connection, until it ends. */
  async #serve(): Promise<void> {
    const ended = Promise.withResolvers<void>();
    const unsent: Uint8Array[] = [];
    let drained: PromiseWithResolvers<void> | null = null;
    const socket = await Bun.connect({
      unix: this.#path,
      socket: {
        data: (_, bytes) => void link.receive(bytes),
        drain: () => flush(),
        close: () => link.close("the socket was closed"),
        error: () => link.close("the socket has failed"),
      },
    });
    const flush = () => {
      for (let head = unsent[0]; head; head = unsent[0]) {
        const written = Math.max(0, socket.write(head));
        if (written < head.byteLength) {
          unsent[0] = head.subarray(written);
          return;
        }
        unsent.shift();
      }
      drained?.resolve();
      drained = null;
    };
    const write = (bytes: Uint8Array) => {
      unsent.push(bytes);
      if (!drained) flush();
      if (unsent.length === 0) return undefined;
      drained ??= Promise.withResolvers<void>();
      return drained.promise;
    };
    this.#write = write;
    const link: Link = new Link({
      side: "guest",
      transport: {
        write,
        close: () => socket.end(),
      },
      maxPeerStreams: MAX_HOST_STREAMS,
      onOpen: (stream, request) => this.#answer(stream, request as { method: string; exec_id: string }),
      onHandshake: (type) => {
        if (type !== FrameType.welcome) return;
        link.sendJson(FrameType.ready, 0, { ok: true, nonce: this.#nonce, stages_ms: {} } satisfies Ready);
        this.#link = link;
      },
      onClosed: () => ended.resolve(),
    });
    const hello: Hello = {
      ...{ generation: GENERATION, version: "0", nonce: "", guest_cid: this.#guestCid, set_up: true, restores: true },
      challenge: randomBytes(32).toString("hex"),
    };
    link.sendJson(FrameType.hello, 0, hello);
    await ended.promise;
  }

  #answer(stream: Stream, { method, exec_id }: { method: string; exec_id: string }): void {
    switch (method) {
      case "clock":
        stream.finish({ clock_ns: String(BigInt(Date.now()) * 1_000_000n) });
        break;
      case "exec_list":
        stream.finish({ executions: [] });
        break;
      case "exec_ended":
        // Only awaited executions are simulated, and they do not end.
        break;
      case "exec_start":
        stream.finish({ execution: this.#stateOf(exec_id, "exited"), existing: false } satisfies ExecReport);
        break;
      case "exec_follow":
        void this.#flow(stream, exec_id);
        break;
      case "terminal_attach":
        // It shows nothing, and ignores all input.
        stream.hear(() => {});
        stream.say({ type: "attached", offset: 0, rows: 24, cols: 80 } satisfies TerminalAttached);
        break;
      default:
        stream.fail(StreamErrorCode.unknown_method, `${method} is not played`);
    }
  }

  /** Writes output at a fixed rate until there is no follower. */
  async #flow(stream: Stream, exec_id: string): Promise<void> {
    const execution = this.#stateOf(exec_id, "running");
    stream.say({ type: "following", execution } satisfies ExecFollowing);
    if (exec_id === FLOOD) return await this.#flood(stream);
    for (let seq = 1; !stream.ended; seq++) {
      const piece = Buffer.concat([pieceHeader(Channel.stdout, seq, PIECE_BYTES), Buffer.alloc(PIECE_BYTES, "x")]);
      await stream.write(Channel.output, piece);
      await sleep(PIECES_EVERY_MS);
    }
  }

  /** Sends pings, and output in pieces of one byte, until there is no follower. */
  async #flood(stream: Stream): Promise<void> {
    for (let seq = 1; !stream.ended; ) {
      await this.#write(PINGS);
      for (let n = 0; n < TINY_PIECES; n++, seq++)
        await stream.write(Channel.output, Buffer.concat([pieceHeader(Channel.stdout, seq, 1), Buffer.from("x")]));
      await sleep(0);
    }
  }

  #stateOf(exec_id: string, state: ExecState["state"]): ExecState {
    const now = Date.now();
    return {
      ...{ exec_id, number: ++this.#executions, state, argv: ["true"], cwd: "/root", user: "root", pid: 2 },
      ...{ timeout_ms: 60_000, exit_code: state === "exited" ? 0 : null, signal: null, timed_out: false },
      ...{ stdout_bytes: 0, stderr_bytes: 0, oldest_seq: 1, last_seq: 0, stdin_bytes: 0, stdin_open: false },
      ...{ started_at_ms: now, finished_at_ms: state === "exited" ? now : null, tag: "", note: "" },
    };
  }
}
