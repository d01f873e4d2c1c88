/** A terminal client for tests: the displayed output, the control frames received, and how it closed. */
import type { Json, TestDaemon } from "../daemon.ts";
import { until } from "../guests.ts";

interface AttachOptions {
  /** Instead of the daemon's API key. */
  token?: string;
  since?: number;
  takeover?: boolean;
}

export class TerminalClient {
  readonly #socket: WebSocket;
  readonly #chunks: Buffer[] = [];
  readonly said: Json[] = [];
  /** Resolves when the connection has ended. */
  readonly closed: Promise<{ code: number; reason: string }>;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) => {
      if (typeof data === "string") this.said.push(JSON.parse(data));
      else this.#chunks.push(Buffer.from(data as ArrayBuffer));
    };
    this.closed = new Promise((resolve) => {
      socket.onclose = ({ code, reason }) => resolve({ code, reason });
    });
  }

  /** Attaches; rejects when that is refused. */
  static async attach(daemon: TestDaemon, wsPath: string, options: AttachOptions = {}): Promise<TerminalClient> {
    const { token, since, takeover } = options;
    const url = new URL(wsPath, daemon.url.replace(/^http/, "ws"));
    if (since !== undefined) url.searchParams.set("since", String(since));
    if (takeover) url.searchParams.set("takeover", "1");
    const socket = new WebSocket(
      url,
      token === undefined
        ? { headers: { authorization: `Bearer ${daemon.apiKey}` } }
        : { protocols: ["roomd.terminal", `roomd.token.${token}`] },
    );
    const client = new TerminalClient(socket);
    const refused = client.closed.then(({ code, reason }) => {
      if (client.said.length === 0) throw new Error(`not attached: ${code} ${reason}`);
    });
    await Promise.race([until("the terminal is attached", () => client.said.length > 0, 60_000), refused]);
    refused.catch(() => {});
    return client;
  }

  /** The first frame. */
  get attached(): Json {
    return this.said[0];
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  get size(): number {
    return this.#chunks.reduce((size, chunk) => size + chunk.byteLength, 0);
  }

  get text(): string {
    return this.bytes.toString();
  }

  type(keys: string | Uint8Array): void {
    this.#socket.send(Buffer.from(keys));
  }

  say(frame: unknown): void {
    this.#socket.send(typeof frame === "string" ? frame : JSON.stringify(frame));
  }

  /** Waits until this was shown, here or before. */
  async shows(expected: string | RegExp, deadlineMs = 30_000): Promise<void> {
    const isThere = () => (typeof expected === "string" ? this.text.includes(expected) : expected.test(this.text));
    await until(`the terminal shows ${expected}`, isThere, deadlineMs).catch((error: Error) => {
      throw new Error(`${error.message}; it shows ${JSON.stringify(this.text.slice(-500))}`);
    });
  }

  /** Ends the connection without a word, as a lost network does. */
  drop(): void {
    this.#socket.terminate();
  }
}

/** Opens a terminal that runs a line of shell. */
export async function openTerminal(
  daemon: TestDaemon,
  sandbox: string,
  line: string | null,
  more: object = {},
): Promise<Json> {
  return await daemon.ok("POST", `/v1/rooms/${sandbox}/terminals`, {
    rows: 24,
    cols: 80,
    ...(line === null ? {} : { argv: ["/bin/bash", "-c", line] }),
    ...more,
  });
}
