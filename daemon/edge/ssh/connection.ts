/**
 * Owns one connection of the SSH door: its logging in, its channels, its bounds.
 *
 *   connected ──keys exchanged──▶ greeted ──a key or password──▶ logged in ──cut, idle or gone──▶ over
 *       │                            └── for a room of another host ──▶ told where that is ──────▶ ┤
 *       └────────── grace over, too many attempts, its place needed ──────────────────────────────┘
 */
import type { Socket } from "node:net";
import { type AuthContext, type Connection as Client, type ServerChannel, type Session, utils } from "ssh2";
import type { Problem } from "../../../shared/api/errors.ts";
import { newId, type OrgId } from "../../../shared/ids.ts";
import type { Log } from "../../core/log.ts";
import { type Bound, type Caller, NO_TRANSFER } from "../../core/operation.ts";
import { describeError, ServiceError } from "../../core/service-error.ts";
import type { Credential, Held, LoggedIn, Ssh } from "../../domain/ssh/index.ts";
import type { Road, RoadRequest } from "../run.ts";
import { SIGNATURES } from "./algorithms.ts";
import { type OtherHosts, sentenceFor, serveElsewhere } from "./elsewhere.ts";
import { serveForward } from "./forward.ts";
import { type Channel, forgetSession, isClosed, markNoChannel, unreadPackets } from "./inside.ts";
import { endSocket } from "./last-words.ts";
import { Line, takesPackets } from "./line.ts";
import type { OpenConnection } from "./open-connection.ts";
import { serveSession } from "./session.ts";

export interface SshLimits {
  login_grace_ms: number;
  max_attempts: number;
  max_connections: number;
  max_connections_per_org: number;
  max_channels: number;
  idle_timeout_ms: number;
}

export interface ConnectionDeps {
  ssh: Ssh;
  road: Road;
  log: Log;
  limits: SshLimits;
  /** Null: this host is by itself. */
  others: OtherHosts | null;
}

/** A wrong password is answered after this time: guessing is slow, and all that is wrong looks the same. */
const REFUSED_AFTER_MS = 300;
const METHODS = ["publickey" as const, "password" as const];
/** ssh2's window with as much again: a client that sends more breaks the protocol. */
const MOST_UNREAD_BYTES = 4 * 1024 * 1024;
/**
 * Of all channels together. Beyond it the client is not read from until half is taken; when the guest takes nothing for as long as
 * the keepalive has patience, the connection ends.
 */
const MOST_UNREAD_IN_ALL = { bytes: 8 * 1024 * 1024, packets: 16_384 };
/** Questions of a client that has not logged in: which methods there are, and which keys would do, are none that count as tries. */
const MOST_QUESTIONS = 100;
const LONGEST_USER = 300;

interface Names {
  room_id: string;
  sandbox: string;
}

export class Connection implements OpenConnection {
  readonly deps: ConnectionDeps;
  readonly socket: Socket;
  readonly line: Line;
  readonly #client: Client;
  readonly #address: string;
  readonly #clientVersion: string;
  readonly #over = Promise.withResolvers<Record<string, unknown>>();
  readonly #aborted = new AbortController();
  /** What is told of each channel's end. */
  readonly #channels = new Map<Channel, () => void>();
  readonly #opened: Record<string, number> = {};
  #names: Names = { room_id: "", sandbox: "" };
  #held: Held | null = null;
  /** Where the room is, when that is on another host. */
  #elsewhere: { sentence: string; org_id: OrgId } | null = null;
  #questions = 0;
  #attempts = 0;
  #recorded = false;
  #open = 0;
  #in = 0;
  #out = 0;
  #lastBytes = performance.now();

  constructor(deps: ConnectionDeps, client: Client, socket: Socket, clientVersion: string) {
    this.deps = deps;
    this.#client = client;
    this.socket = socket;
    this.line = new Line(client, socket);
    this.#address = socket.remoteAddress ?? "";
    this.#clientVersion = clientVersion.slice(0, 128);
    client.on("authentication", (context) => void this.#authenticate(context));
    client.on("ready", () => this.#serve());
    // A client that breaks the protocol, or its line, ends its own connection only.
    client.on("error", (error) => this.cut(describeError(error)));
    socket.on("data", () => this.#look());
    socket.on("drain", () => this.#readOn());
    socket.once("close", () => this.#leave());
  }

  /** What the session holds on to. Only for one that has logged in. */
  get held(): Held {
    if (!this.#held) throw new Error("nobody has logged in");
    return this.#held;
  }

  /** Whose place it takes. Only for one that has logged in, be it for a room of another host. */
  get orgId(): OrgId {
    return this.#elsewhere?.org_id ?? this.held.credential.caller.org_id;
  }

  /** Whether it is over, or about to be. */
  get isOver(): boolean {
    return this.#aborted.signal.aborted;
  }

  readonly countIn = (bytes: number): void => {
    this.#in += bytes;
    this.#lastBytes = performance.now();
    this.#readOn();
  };

  readonly countOut = (bytes: number): void => {
    this.#out += bytes;
    this.#lastBytes = performance.now();
  };

  /** Walks the road with an operation of the session; resolves to why it was refused, or null. */
  async ask(bound: Bound, fields: Record<string, unknown>): Promise<string | null> {
    const { credential } = this.held;
    const refused = await this.#walk(bound, fields, () => {
      if (!credential.isCurrent()) throw new ServiceError("invalid_api_key");
      return credential.caller;
    });
    const { name } = bound.operation;
    if (!refused) this.#opened[name] = (this.#opened[name] ?? 0) + 1;
    return refused?.detail ?? null;
  }

  trouble(error: unknown): void {
    this.deps.log.error("ssh channel failed", { ip: this.#address, error: describeError(error) });
    this.cut("a channel failed");
  }

  /** Ends the connection at once: nobody sits any more at what it has open. */
  cut(why: string): void {
    if (this.isOver) return;
    this.deps.log.debug("ssh connection cut", { ip: this.#address, why });
    this.#hangUp();
    this.#client.end();
    endSocket(this.socket);
  }

  #hangUp(): void {
    this.#aborted.abort();
    for (const channel of [...this.#channels.keys()]) this.#drop(channel);
  }

  #drop(channel: Channel): void {
    const leave = this.#channels.get(channel);
    this.#channels.delete(channel);
    leave?.();
    this.#readOn();
  }

  async #authenticate(context: AuthContext): Promise<void> {
    if (++this.#questions > MOST_QUESTIONS) return this.cut("too many questions");
    // The first question of every client is what it may try; it is none that counts.
    if (context.method === "none") return context.reject([...METHODS]);
    if (++this.#attempts > this.deps.limits.max_attempts) return this.cut("too many attempts");
    const names = namesOf(context.username);
    if (names) this.#names = names;
    try {
      if (names && context.method === "password") return await this.#byPassword(context, context.password);
      if (names && context.method === "publickey") return await this.#byPublicKey(context);
    } catch (error) {
      this.deps.log.error("ssh login failed", { error: describeError(error) });
    }
    this.#refuse(context);
  }

  async #byPassword(context: AuthContext, password: string): Promise<void> {
    let credential: Credential;
    try {
      credential = this.deps.ssh.byPassword(password);
    } catch (error) {
      this.#record(error);
      return this.#refuse(context);
    }
    if (await this.#login(credential)) context.accept();
    else this.#refuse(context);
  }

  async #byPublicKey(context: Extract<AuthContext, { method: "publickey" }>): Promise<void> {
    const { algo, data } = context.key;
    const { signature, blob } = context;
    const algorithm = algo === "ssh-rsa" && context.hashAlgo ? `rsa-sha2-${context.hashAlgo.slice(3)}` : algo;
    const known = SIGNATURES.includes(algorithm) ? this.deps.ssh.byPublicKey(data) : [];
    // Only asked whether the key would do, which says nothing about the name: anybody may have somebody's public key, and would
    // learn by it which agents and rooms there are.
    if (signature === undefined || blob === undefined) {
      if (known.length === 0) return this.#refuse(context, true);
      this.#attempts--;
      return context.accept();
    }
    const key = utils.parseKey(data);
    const isSigned =
      !(key instanceof Error) && !Array.isArray(key) && key.verify(blob, signature, context.hashAlgo) === true;
    const opening = isSigned && known.find((each) => this.deps.ssh.verbs.opens(each, { ...this.#names }));
    const credential = opening || (isSigned && (await this.#knownElsewhere(known)));
    if (credential && (await this.#login(credential))) context.accept();
    else this.#refuse(context);
  }

  /** Whose organization has the room on another host. */
  async #knownElsewhere(known: readonly Credential[]): Promise<Credential | null> {
    const { others } = this.deps;
    if (!others) return null;
    for (const each of known) if (await sentenceFor(others, each.caller, this.#names)) return each;
    return null;
  }

  async #login(credential: Credential): Promise<boolean> {
    const taken: LoggedIn[] = [];
    const bound = this.deps.ssh.verbs.login(credential, this.#clientVersion, (session) => void taken.push(session));
    this.#recorded = true;
    const refused = await this.#walk(bound, {}, () => credential.caller);
    const [session] = taken;
    if (refused?.code === "misdirected" && this.deps.others && !this.isOver) {
      const sentence = await sentenceFor(this.deps.others, credential.caller, this.#names);
      this.#elsewhere = sentence === null ? null : { sentence, org_id: credential.caller.org_id };
      return this.#elsewhere !== null;
    }
    if (refused || !session || this.isOver) return false;
    const { sandbox_id, facts } = session;
    this.#held = { sandbox_id, credential };
    const ip = this.#address;
    const cut = (why: string) => this.cut(why);
    this.deps.ssh.sessions.keep({ credential, sandbox_id, facts, ip, cut, over: this.#over.promise });
    return true;
  }

  /** All that is wrong gets the same answer, at the same pace. */
  #refuse(context: AuthContext, atOnce = false): void {
    const refuse = () => context.reject([...METHODS]);
    if (atOnce) refuse();
    else setTimeout(refuse, REFUSED_AFTER_MS);
  }

  async #walk(bound: Bound, fields: Record<string, unknown>, recognise: () => Caller): Promise<Problem | null> {
    const reply = await this.deps.road.run(bound, { ...this.#request(bound.operation.name, fields), recognise });
    return reply.kind === "problem" ? reply.problem : null;
  }

  #request(path: string, fields: Record<string, unknown>): RoadRequest {
    return {
      source: "ssh",
      request_id: newId("req"),
      ip: this.#address,
      authorization: null,
      token: null,
      path,
      params: { ...this.#names },
      query: () => ({}),
      body: async () => ({ fields, sha256: "" }),
      idempotency_key: null,
      trace: null,
      transfer: NO_TRANSFER,
      signal: this.#aborted.signal,
    };
  }

  #serve(): void {
    const { limits } = this.deps;
    if (this.#elsewhere !== null) {
      serveElsewhere(this.#client, this.#elsewhere.sentence, () => this.cut("the room is on another host"));
      return;
    }
    const idle = setInterval(
      () => {
        if (performance.now() - this.#lastBytes > limits.idle_timeout_ms) this.cut("idle");
      },
      Math.min(limits.idle_timeout_ms, 60_000),
    );
    this.socket.once("close", () => clearInterval(idle));
    this.#client.on("session", (accept, reject) => {
      if (this.#open >= limits.max_channels) return reject();
      const requests = accept();
      this.#enter(requests);
      markNoChannel(requests);
      serveSession(requests, this);
    });
    this.#client.on("tcpip", (accept, reject, info) => {
      if (this.#open >= limits.max_channels) return reject();
      this.#open++;
      const leave = () => this.#open--;
      serveForward(info, this, accept, reject).then(leave, (error: unknown) => {
        leave();
        this.trouble(error);
      });
    });
  }

  /** A channel whose unread bytes count; `leave` is called when it is over, or the connection is. */
  watch(opened: ServerChannel, leave: () => void): void {
    const channel = opened as unknown as Channel;
    this.#channels.set(channel, leave);
    if (!takesPackets(channel)) this.cut("a channel takes no packets");
    if (this.isOver) this.#drop(channel);
    channel.once("close", () => this.#drop(channel));
  }

  #enter(requests: Session): void {
    this.#open++;
    requests.once("close", () => {
      this.#open--;
      forgetSession(this.#client, requests);
    });
  }

  /** After all that came at once: ssh2 takes what comes beyond the window all the same, and tells late who has closed. */
  #look(): void {
    if (this.isOver) return;
    const channels = [...this.#channels.keys()];
    for (const channel of channels) if (isClosed(channel)) this.#drop(channel);
    if (channels.some(({ readableLength }) => readableLength > MOST_UNREAD_BYTES)) this.cut("sent beyond the window");
    else if (this.line.isUnread || this.#isBehind(1)) this.socket.pause();
  }

  /** Whether more than a share of what may wait to be taken does. */
  #isBehind(share: number): boolean {
    let [bytes, packets] = [0, 0];
    for (const channel of this.#channels.keys()) {
      bytes += channel.readableLength;
      packets += unreadPackets(channel);
    }
    return bytes > MOST_UNREAD_IN_ALL.bytes * share || packets > MOST_UNREAD_IN_ALL.packets * share;
  }

  #readOn(): void {
    if (this.socket.isPaused() && !this.line.isUnread && !this.#isBehind(1 / 2)) this.socket.resume();
  }

  /** Says who tried what, once for a connection. */
  #record(error: unknown): void {
    this.#recorded = true;
    this.deps.road.identify({
      ...this.#request("ssh_login", {}),
      recognise: () => {
        throw error;
      },
    });
  }

  #leave(): void {
    this.#hangUp();
    if (!this.#held && this.#attempts > 0 && !this.#recorded) this.#record(new ServiceError("invalid_api_key"));
    this.#over.resolve({ opened: this.#opened, bytes_in: this.#in, bytes_out: this.#out });
  }
}

/** `agent_id@room_id`; neither has an @ of its own. */
function namesOf(username: string): Names | null {
  const [sandbox = "", room_id = "", ...more] = username.slice(0, LONGEST_USER).split("@");
  return sandbox === "" || room_id === "" || more.length > 0 ? null : { room_id, sandbox };
}
