/**
 * One connection of the SSH transport: login, channels, limits.
 *
 *     connected ──keys exchanged──▶ greeted ──a key or password──▶ logged in ──cut, idle or gone──▶ over
 *         │                            └── for a room that cannot be reached ──▶ reason sent ───────▶ ┤
 *         └────────── grace over, too many attempts, its place needed ───────────────────────────────┘
 */
import type { Socket } from "node:net";
import type { AuthContext, Connection as Client, ServerChannel, Session } from "ssh2";
import type { OrgId } from "../../../shared/ids.ts";
import type { Host } from "../../cluster/directory.ts";
import { monotonicMs, startInterval, startTimer, stopTimer } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import { describeError, ServiceError } from "../../core/service-error.ts";
import type { Credential } from "../../domain/ssh/index.ts";
import type { Outcome } from "../pipeline/request-context.ts";
import { serveForward, type Where } from "./forward.ts";
import { Ingress } from "./forwarded/ingress.ts";
import type { Login } from "./forwarded/messages.ts";
import { endSocket } from "./graceful-close.ts";
import type { OpenConnection } from "./open-connection.ts";
import {
  forwarded,
  hasRoom,
  type OtherHosts,
  openTo,
  sentenceFor,
  sentenceForSeveral,
  serveElsewhere,
} from "./remote-owner.ts";
import { serveSession } from "./session.ts";
import {
  isSigned,
  isUnique,
  type Names,
  namesOf,
  SessionContext,
  type SessionDeps,
  type SignedLogin,
} from "./session-context.ts";
import type { Opening } from "./session-opening.ts";
import { ConnectionBounds, takesPackets } from "./ssh2-bounds.ts";
import {
  type Channel,
  forgetSession,
  isClosed,
  markNoChannel,
  refuseOpening,
  unreadPackets,
} from "./ssh2-internals.ts";

export interface SshLimits {
  login_grace_ms: number;
  max_attempts: number;
  max_connections: number;
  max_connections_per_org: number;
  max_channels: number;
  idle_timeout_ms: number;
}

export interface ConnectionDeps extends SessionDeps {
  log: Log;
  limits: SshLimits;
  /** Null: standalone. */
  others: OtherHosts | null;
}

/** A failed login is answered after this time: guessing is slow, and all failures look the same. */
const REFUSED_AFTER_MS = 300;
const METHODS = ["publickey" as const, "password" as const];
/** Twice ssh2's window: a client that sends more violates the protocol. */
const MAX_UNREAD_BYTES = 4 * 1024 * 1024;
/**
 * Limit for all channels together. Above it the client is not read from until half is consumed; if the guest reads nothing within the time
 * that keepalive tolerates, the connection is closed.
 */
const MAX_UNREAD_IN_ALL = { bytes: 8 * 1024 * 1024, packets: 16_384 };
/** Queries of a client that has not logged in: for the available methods and acceptable keys. They do not count as attempts. */
const MAX_QUESTIONS = 100;
/** ssh2's names of requests to forward ports and sockets of the sandbox to the client. */
const FORWARDS_BACK: readonly string[] = ["tcpip-forward", "streamlocal-forward@openssh.com"];
const NO_WAY_BACK =
  "remote forwarding (-R) is refused: no program in a sandbox may reach this client's network. Forward the other way with -L, or use roomd port expose.";
/** Errors caused neither by the user nor by the name: they are shown to the client. */
const TOLD: readonly string[] = ["host_unreachable", "room_moving", "cluster_unavailable", "not_a_member"];
/** For the last text of a session to be sent before the connection closes. */
const LAST_SENTENCE_MS = 1000;

export class Connection implements OpenConnection {
  readonly deps: ConnectionDeps;
  readonly socket: Socket;
  readonly line: ConnectionBounds;
  readonly notes = new Set<string>();
  readonly #client: Client;
  readonly #address: string;
  readonly #clientVersion: string;
  readonly #aborted = new AbortController();
  /** Called at the end of each channel. */
  readonly #channels = new Map<Channel, () => void>();
  /** The current or successful login; null for an invalid user name. */
  #visit: SessionContext | null = null;
  /** All login attempts; a session of any of them ends with the connection. */
  readonly #visits = new Set<SessionContext>();
  /** Opens channels after a login. */
  #opening: { on: Opening; org_id: OrgId } | null = null;
  /** Text for a logged-in client that gets no channels. */
  #told: { sentence: string; org_id: OrgId } | null = null;
  #carried: Ingress | null = null;
  #questions = 0;
  #attempts = 0;
  #recorded = false;
  #open = 0;
  #lastBytes = monotonicMs();

  constructor(deps: ConnectionDeps, client: Client, socket: Socket, clientVersion: string) {
    this.deps = deps;
    this.#client = client;
    this.socket = socket;
    this.line = new ConnectionBounds(client, socket);
    this.#address = socket.remoteAddress ?? "";
    this.#clientVersion = clientVersion.slice(0, 128);
    client.on("authentication", (context) => void this.#authenticate(context));
    client.on("ready", () => this.#serve());
    // A protocol violation or a broken connection ends this client's connection only.
    client.on("error", (error) => this.cut(describeError(error)));
    socket.on("data", () => this.#look());
    socket.on("drain", () => this.#readOn());
    socket.once("close", () => this.#leave());
  }

  get opening(): Opening {
    if (!this.#opening) throw new Error("no login yet");
    return this.#opening.on;
  }

  /** The organization that it is counted for. Only after login, even if only the refusal follows. */
  get orgId(): OrgId {
    const { org_id } = this.#opening ?? this.#told ?? {};
    if (org_id === undefined) throw new Error("no login yet");
    return org_id;
  }

  /** Whether the connection is over, or about to be. */
  get isOver(): boolean {
    return this.#aborted.signal.aborted;
  }

  readonly countIn = (bytes: number): void => {
    this.#visit?.countIn(bytes);
    this.#lastBytes = monotonicMs();
    this.#readOn();
  };

  readonly countOut = (bytes: number): void => {
    this.#visit?.countOut(bytes);
    this.#lastBytes = monotonicMs();
  };

  lost(error: unknown): void {
    this.deps.log.warn("lost an ssh command", { ip: this.#address, error: describeError(error) });
  }

  trouble(error: unknown): void {
    this.deps.log.error("ssh channel failed", { ip: this.#address, error: describeError(error) });
    this.cut("a channel failed");
  }

  /** Closes the connection immediately: its commands and ports have no client any more. */
  cut(why: string): void {
    if (this.isOver) return;
    this.deps.log.debug("closed an ssh connection", { ip: this.#address, why });
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
    if (++this.#questions > MAX_QUESTIONS) return this.cut("too many requests");
    // The first request of every client is a query for the methods; it is not counted.
    if (context.method === "none") return context.reject([...METHODS]);
    if (++this.#attempts > this.deps.limits.max_attempts) return this.cut("too many attempts");
    const visit = this.#visitOf(context.username);
    try {
      if (visit && context.method === "password") return await this.#byPassword(visit, context, context.password);
      if (visit && context.method === "publickey") return await this.#byPublicKey(visit, context);
    } catch (error) {
      this.deps.log.error("ssh login failed", { error: describeError(error) });
    }
    this.#refuse(context);
  }

  #visitOf(user: string): SessionContext | null {
    const names = namesOf(user);
    if (!names) return null;
    this.#visit = new SessionContext(this.deps, {
      names,
      ip: this.#address,
      client: this.#clientVersion,
      gone: this.#aborted.signal,
      cut: (why) => this.cut(why),
    });
    this.#visits.add(this.#visit);
    return this.#visit;
  }

  async #byPassword(visit: SessionContext, context: AuthContext, password: string): Promise<void> {
    const { username: user } = context;
    let credential: Credential;
    try {
      credential = this.deps.ssh.byPassword(password);
    } catch (error) {
      const isIn = await this.#byAccessElsewhere(user, password);
      if (isIn === null) this.#record(visit, error);
      return isIn ? context.accept() : this.#refuse(context);
    }
    if (await this.#login(visit, credential, { user, password })) context.accept();
    else this.#refuse(context);
  }

  /** By the password of an SSH access, which its own host verifies; null: no host has it, or that is unknown. */
  async #byAccessElsewhere(user: string, password: string): Promise<boolean | null> {
    const host = await this.deps.others?.hostOfAccess(password).catch(() => null);
    if (!host) return null;
    // It is recorded there.
    this.#recorded = true;
    await this.#carry(host, { user, password }).catch((error: unknown) => {
      this.deps.log.debug("failed to forward an ssh session", { host: host.host_id, error: describeError(error) });
    });
    return this.#opening !== null && !this.isOver;
  }

  async #byPublicKey(visit: SessionContext, context: Extract<AuthContext, { method: "publickey" }>): Promise<void> {
    const { algo, data: key } = context.key;
    const { signature, blob } = context;
    const algorithm = algo === "ssh-rsa" && context.hashAlgo ? `rsa-sha2-${context.hashAlgo.slice(3)}` : algo;
    // A query whether the key is acceptable. The response depends on the key alone, not on the name: any client may have another user's
    // public key, and would otherwise learn which agents and rooms exist.
    if (signature === undefined || blob === undefined) {
      if (visit.knownBy({ algorithm, key }).length === 0) return this.#refuse(context, true);
      this.#attempts--;
      return context.accept();
    }
    const signed = { algorithm, key, blob, signature };
    const names = namesOf(context.username);
    const found = names ? await this.#openedBy(visit, names, signed) : [];
    const [first] = found;
    // Any user may have registered another's public key: a login must not reach another's sandbox of the same name.
    if (names && first && found.length > 1 && !isUnique(names)) {
      this.#told = { sentence: sentenceForSeveral(names), org_id: first.caller.org_id };
      return context.accept();
    }
    const login = { user: context.username, signed: textOf(signed) };
    for (const each of found) if (await this.#login(visit, each, login)) return context.accept();
    this.#refuse(context);
  }

  /** Credentials of organizations that have the room, on this host or another. */
  async #openedBy(visit: SessionContext, names: Names, signed: SignedLogin): Promise<Credential[]> {
    const here = visit.opening(signed);
    const isHere = here.length > 0;
    const { others } = this.deps;
    if (!others || (isHere && isUnique(names)) || !isSigned(signed)) return here;
    const more = visit.knownBy(signed).filter(({ id }) => !here.some((each) => each.id === id));
    // If that is currently unknown, the pipeline reports so to a caller with a valid key.
    const has = await Promise.all(more.map((each) => hasRoom(others, each.caller, names, !isHere)));
    return [...here, ...more.filter((_, index) => has[index])];
  }

  /** `proof` is forwarded to another host. */
  async #login(visit: SessionContext, credential: Credential, proof: Omit<Login, "type" | "client">): Promise<boolean> {
    const { org_id } = credential.caller;
    const { others } = this.deps;
    this.#recorded = true;
    const refused = await visit.login(credential, others ? (host) => this.#carry(host, proof, org_id) : undefined);
    if (this.isOver) return false;
    if (refused && others && TOLD.includes(refused.code)) this.#told ??= { sentence: refused.detail, org_id };
    if (!refused && visit.orgId !== null) {
      this.#visit = visit;
      this.#opening = { on: visit, org_id };
    }
    return this.#opening !== null || this.#told !== null;
  }

  /** Logs in at the host that has the room, which then handles all requests. Rejects with host_unreachable. */
  async #carry(host: Host, proof: Omit<Login, "type" | "client">, orgId?: OrgId): Promise<Outcome> {
    const { others } = this.deps;
    if (!others) throw new ServiceError("host_unreachable");
    const signal = this.#aborted.signal;
    const socket = await openTo(others, host, this.#address, signal);
    if (socket === null) {
      // An older host takes no forwarded sessions.
      const names = namesOf(proof.user);
      if (names && orgId) this.#told = { sentence: sentenceFor(others, host, names), org_id: orgId };
      return forwarded(null);
    }
    const started = await Ingress.begin(socket, host, { ...proof, client: this.#clientVersion }, signal);
    if ("problem" in started) return forwarded(started.problem);
    const { session: on, org_id } = started;
    this.#opening = { on, org_id };
    this.#carried = on;
    void on.over.then((why) => this.#overElsewhere(why));
    return forwarded(null);
  }

  /** Open channels report the sentence first; then the connection ends. */
  #overElsewhere(why: string): void {
    if (this.isOver) return;
    if (this.#channels.size === 0) {
      this.cut(why);
      return;
    }
    const timer = startTimer(() => this.cut(why), LAST_SENTENCE_MS);
    this.socket.once("close", () => stopTimer(timer));
  }

  /** All failures get the same answer, after the same delay unless `atOnce`. */
  #refuse(context: AuthContext, atOnce = false): void {
    const refuse = () => context.reject([...METHODS]);
    if (atOnce) refuse();
    else startTimer(refuse, REFUSED_AFTER_MS);
  }

  #serve(): void {
    const { limits } = this.deps;
    if (this.#told !== null) {
      serveElsewhere(this.#client, this.#told.sentence, () => this.cut("the room cannot be reached"));
      return;
    }
    const idle = startInterval(
      () => {
        if (monotonicMs() - this.#lastBytes > limits.idle_timeout_ms) this.cut("idle");
      },
      Math.min(limits.idle_timeout_ms, 60_000),
    );
    this.socket.once("close", () => stopTimer(idle));
    this.#client.on("session", (accept, reject) => {
      if (this.#open >= limits.max_channels) return reject();
      const requests = accept();
      this.#enter(requests);
      markNoChannel(requests);
      serveSession(requests, this);
    });
    // `-R`: the answer is only success or failure, so the first session shows the reason.
    this.#client.on("request", (_, reject, name) => {
      if (FORWARDS_BACK.includes(name)) this.notes.add(NO_WAY_BACK);
      reject?.();
    });
    const forward = (destination: Where, accept: () => ServerChannel, reject: () => void) => {
      if (this.#open >= limits.max_channels) return reject();
      this.#open++;
      const leave = () => this.#open--;
      const refuse = (reason: string) => refuseOpening(this.#client, reject, reason);
      serveForward(destination, this, accept, refuse).then(leave, (error: unknown) => {
        leave();
        this.trouble(error);
      });
    };
    this.#client.on("tcpip", (accept, reject, { destIP: host, destPort: port }) =>
      forward({ host, port }, accept, reject),
    );
    this.#client.on("openssh.streamlocal", (accept, reject, { socketPath: path }) =>
      forward({ path }, accept as () => ServerChannel, reject),
    );
  }

  /** A channel with its unread bytes counted; `leave` is called at the end of the channel or connection. */
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

  /** After all received packets: ssh2 accepts data above the window, and reports closed channels late. */
  #look(): void {
    if (this.isOver) return;
    const channels = [...this.#channels.keys()];
    for (const channel of channels) if (isClosed(channel)) this.#drop(channel);
    if (channels.some(({ readableLength }) => readableLength > MAX_UNREAD_BYTES)) this.cut("sent beyond the window");
    else if (this.line.isUnread || this.#isBehind(1)) this.socket.pause();
  }

  /** Whether unread data exceeds a share of its limit. */
  #isBehind(share: number): boolean {
    let [bytes, packets] = [0, 0];
    for (const channel of this.#channels.keys()) {
      bytes += channel.readableLength;
      packets += unreadPackets(channel);
    }
    return bytes > MAX_UNREAD_IN_ALL.bytes * share || packets > MAX_UNREAD_IN_ALL.packets * share;
  }

  #readOn(): void {
    if (this.socket.isPaused() && !this.line.isUnread && !this.#isBehind(1 / 2)) this.socket.resume();
  }

  /** Records the user and the error, once per connection. */
  #record(visit: SessionContext, error: unknown): void {
    this.#recorded = true;
    visit.record(error);
  }

  #leave(): void {
    this.#hangUp();
    this.#carried?.close();
    const tried = this.#visit ?? this.#visitOf("-@-");
    if (tried && !this.#opening && this.#attempts > 0 && !this.#recorded)
      this.#record(tried, new ServiceError("invalid_api_key"));
    for (const visit of this.#visits) visit.leave();
  }
}

function textOf({ algorithm, key, blob, signature }: SignedLogin): NonNullable<Login["signed"]> {
  const text = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64");
  return { algorithm, key: text(key), blob: text(blob), signature: text(signature) };
}
