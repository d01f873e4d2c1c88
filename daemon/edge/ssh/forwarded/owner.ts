/**
 * A session that another host forwards here: the client authenticates to this host, and each channel passes the pipeline here. The other
 * host is trusted only for the client's address.
 *
 *     connected ──login──▶ logged in ──key, sandbox or host has ended──▶ over
 *         └── invalid, or late ──────┴── the other host has gone ──────▶ ┘
 */
import { constants } from "node:os";
import { newId, type OrgId } from "../../../../shared/ids.ts";
import { startTimer, stopTimer } from "../../../core/clock.ts";
import type { DuplexSession, Peer } from "../../../core/concurrency/duplex-session.ts";
import type { Log } from "../../../core/log.ts";
import { describeError, ServiceError } from "../../../core/service-error.ts";
import type { Credential } from "../../../domain/ssh/index.ts";
import { ALIVE, MAX_MESSAGE_BYTES } from "../../hosts/ssh.ts";
import { toProblem } from "../../pipeline/problem.ts";
import { namesOf, SessionContext, type SessionDeps, type SignedLogin } from "../session-context.ts";
import { type FromEntry, type FromOwner, type Login, readFrame, readMessage, type SignedText } from "./messages.ts";
import { OwnerChannel } from "./owner-channel.ts";
import { isLoginOf } from "./proof.ts";

const LOGIN_MS = 10_000;
/** Timeout without a keep-alive message of the other host, which sends them often. */
const SILENCE_MS = 15_000;
const NORMAL = 1000;
const BREACH = 1002;
const MAX_CLIENT_LENGTH = 128;
/** Includes refused channels: each is one of a client's channels. */
const MAX_CHANNEL = 2 ** 32 - 1;

export interface ForwardedDeps extends SessionDeps {
  log: Log;
  limits: { max_channels: number };
  /** Occupies a slot among the sessions of this host. Throws rate_limited. */
  enter(orgId: OrgId): () => void;
}

export class ForwardedSession implements DuplexSession {
  readonly mostBytes = MAX_MESSAGE_BYTES;
  readonly #deps: ForwardedDeps;
  readonly #ip: string | null;
  readonly #channels = new Map<number, OwnerChannel>();
  readonly #gone = new AbortController();
  #talker: Peer | null = null;
  #visit: SessionContext | null = null;
  #isIn = false;
  #leavePlace = () => {};
  #deadline: Timer | null = null;

  constructor(deps: ForwardedDeps, ip: string | null) {
    this.#deps = deps;
    this.#ip = ip;
  }

  start(talker: Peer): void {
    this.#talker = talker;
    this.#deadline = startTimer(() => this.#end(NORMAL, "no login yet"), LOGIN_MS);
  }

  hear(text: string): void {
    if (this.#gone.signal.aborted) return;
    if (text === ALIVE) {
      this.#isHere();
      return;
    }
    const message = readMessage<FromEntry>(text);
    if (!message) this.#end(BREACH, "no message");
    else if (message.type === "login" && this.#visit === null) void this.#login(message);
    else if (message.type === "login" || !this.#isIn) this.#end(BREACH, "message out of order");
    else this.#carryOut(message);
  }

  take(frame: Uint8Array): void {
    if (this.#gone.signal.aborted) return;
    const read = readFrame(frame);
    const channel = read && this.#channels.get(read.channel);
    // Bytes for a channel that has just ended may still be in transit.
    if (read && channel && !channel.take(read.stream, read.bytes)) this.#end(BREACH, "more than the window");
  }

  left(): void {
    if (this.#gone.signal.aborted) return;
    stopTimer(this.#deadline);
    this.#gone.abort();
    for (const channel of this.#channels.values()) channel.hangUp();
    this.#channels.clear();
    this.#visit?.leave();
    this.#leavePlace();
  }

  #isHere(): void {
    if (this.#isIn) this.#deadline?.refresh();
    this.#talker?.say(ALIVE);
  }

  #say = (message: FromOwner): void => {
    if (!this.#gone.signal.aborted) this.#talker?.say(JSON.stringify(message));
  };

  #end(code: number, why: string): void {
    this.#deps.log.debug("forwarded ssh session ended", { ip: this.#ip, why });
    this.left();
    this.#talker?.close(code, why);
  }

  async #login(login: Login): Promise<void> {
    try {
      await this.#logIn(login);
      if (this.#gone.signal.aborted) return;
      stopTimer(this.#deadline);
      this.#deadline = startTimer(() => this.#end(NORMAL, "the other host does not respond"), SILENCE_MS);
      this.#isIn = true;
    } catch (error) {
      const problem = error instanceof Refused ? error.problem : toProblem(error, newId("req"), this.#deps.log);
      this.#say({ type: "not_welcome", problem });
      this.#end(NORMAL, problem.code);
    }
  }

  async #logIn({ user, client, password, signed }: Login): Promise<void> {
    const names = namesOf(String(user));
    const visit = new SessionContext(this.#deps, {
      names: names ?? { room_id: "", sandbox: "" },
      ip: this.#ip,
      client: String(client).slice(0, MAX_CLIENT_LENGTH),
      hop: 1,
      gone: this.#gone.signal,
      cut: (sentence) => {
        this.#say({ type: "over", sentence });
        this.#end(NORMAL, sentence);
      },
    });
    this.#visit = visit;
    const credential = credentialOf(this.#deps, visit, String(user), password, signed);
    this.#leavePlace = this.#deps.enter(credential.caller.org_id);
    if (this.#gone.signal.aborted) return this.#leavePlace();
    const problem = await visit.login(credential);
    if (problem) throw new Refused(problem);
    this.#say({ type: "welcome", org_id: credential.caller.org_id });
  }

  #carryOut(message: Exclude<FromEntry, Login>): void {
    const { channel: id } = message;
    const channel = this.#channels.get(id);
    if (message.type === "open") {
      if (channel || !Number.isSafeInteger(id) || id < 0 || id > MAX_CHANNEL) this.#end(BREACH, "no new channel");
      else this.#open(id, message.what, message.fields);
      return;
    }
    if (!channel) return;
    if (message.type === "hang_up") channel.hangUp();
    else if (message.type === "end") channel.endInput();
    else if (message.type === "taken") channel.taken(message.stream, message.bytes);
    else if (message.type === "resize") channel.resize(message.rows, message.cols);
    else if (message.type === "signal" && Object.hasOwn(constants.signals, message.name)) channel.signal(message.name);
  }

  #open(id: number, kind: unknown, fields: unknown): void {
    const visit = this.#visit;
    if (!visit) return;
    if (this.#channels.size >= this.#deps.limits.max_channels) {
      this.#say({ type: "refused", channel: id, detail: "There are too many channels." });
      return;
    }
    const send = (frame: Uint8Array) => this.#talker?.send(frame) ?? Promise.resolve();
    const channel = new OwnerChannel(id, { visit, say: this.#say, send });
    this.#channels.set(id, channel);
    channel
      .serve(kind, (fields ?? {}) as Record<string, unknown>)
      .catch((error: unknown) => {
        this.#deps.log.error("ssh channel failed", { ip: this.#ip, error: describeError(error) });
        this.#end(NORMAL, "a channel failed");
      })
      .finally(() => this.#channels.delete(id));
  }
}

class Refused extends Error {
  readonly problem: ReturnType<typeof toProblem>;
  constructor(problem: ReturnType<typeof toProblem>) {
    super(problem.detail);
    this.problem = problem;
  }
}

/** Throws invalid_api_key, api_key_expired; the failure is in the audit log then. */
function credentialOf(
  { ssh }: SessionDeps,
  visit: SessionContext,
  user: string,
  password: unknown,
  signed: SignedText | undefined,
): Credential {
  try {
    if (typeof password === "string") return ssh.byPassword(password);
    const login = signed && signedOf(signed);
    const [credential, ...more] = login && isLoginOf(user, login) ? visit.opening(login) : [];
    // Of several none is meant.
    if (credential && more.length === 0) return credential;
    throw new ServiceError("invalid_api_key");
  } catch (error) {
    visit.record(error);
    throw error;
  }
}

function signedOf({ algorithm, key, blob, signature }: SignedText): SignedLogin {
  const bytes = (text: unknown) => Buffer.from(String(text), "base64");
  return { algorithm: String(algorithm), key: bytes(key), blob: bytes(blob), signature: bytes(signature) };
}
