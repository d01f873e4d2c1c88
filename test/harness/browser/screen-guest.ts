/**
 * Screens on an in-memory link in place of the guest, connected to a handler of the agent or to an in-memory server, and calls of the
 * operations on them. There is no virtual machine here.
 */

import { type Bound, type Caller, type KeyCall, NO_TRANSFER, trialCall } from "../../../daemon/core/call/operation.ts";
import type { DuplexSession } from "../../../daemon/core/concurrency/duplex-session.ts";
import type { Asker } from "../../../daemon/core/concurrency/fair-semaphore.ts";
import { makeLog } from "../../../daemon/core/log.ts";
import { openConnection } from "../../../daemon/db/client.ts";
import { migrate } from "../../../daemon/db/migrate.ts";
import { type Database, makeDatabase } from "../../../daemon/db/transact.ts";
import type { SandboxAccess, ScreenDeps, ScreenTarget } from "../../../daemon/domain/screen/deps.ts";
import { makeScreens, type Screens } from "../../../daemon/domain/screen/index.ts";
import type { Wire } from "../../../daemon/domain/screen/rfb/client.ts";
import type { GuestLink } from "../../../daemon/host/guest-link/handshake.ts";
import type { Stream } from "../../../shared/agent-protocol/link.ts";
import { Channel } from "../../../shared/agent-protocol/messages.ts";
import type { OrgId } from "../../../shared/ids.ts";
import { joined } from "../../protocol/wire.ts";
import type { RfbServer } from "./rfb-server.ts";

type Handler = (stream: Stream) => Promise<void> | void;

/** The guest's half of a connection to a server in memory. */
export function serve(server: RfbServer): Handler {
  return async (stream) => {
    const { output, write, close } = server.wire;
    stream.finished.then(close, close);
    stream.say({ type: "connected" });
    const hear = async () => {
      for await (const bytes of stream.read(Channel.stdin)) await write(bytes);
    };
    hear().catch(() => {});
    for await (const bytes of output) if (!(await stream.write(Channel.stdout, bytes))) return;
    stream.endChannel(Channel.stdout);
  };
}

export class ScreenGuest {
  readonly screens: Screens;
  readonly database: Database;
  /** Revokes the key that made a ticket and the viewing key. */
  readonly revoke: () => void;
  /** How many keep the sandbox from being idle. */
  inUse = 0;
  /** Number of connections so far. */
  connected = 0;
  /** The sandbox has this state from now on. */
  readonly become: (state: string) => void;

  constructor(handler: Handler, options: Partial<Pick<ScreenDeps, "unusedMs" | "frameBytes" | "paths">> = {}) {
    const { host } = joined({
      guest: {
        onOpen: (stream) => {
          this.connected++;
          void handler(stream);
        },
      },
    });
    const stopped = Promise.withResolvers<string>();
    this.become = stopped.resolve;
    const sandboxes: SandboxAccess = {
      find: () => TARGET,
      findEver: () => TARGET,
      withLink: (_, work) => work(host.link as unknown as GuestLink),
      stopped: () => stopped.promise,
      use: (_, work) => {
        this.inUse++;
        return work().finally(() => this.inUse--);
      },
    };
    const connection = openConnection(":memory:");
    migrate(connection);
    this.database = makeDatabase(connection);
    const cuts = new Set<() => void>();
    let isCurrent = true;
    this.revoke = () => {
      isCurrent = false;
      for (const cut of [...cuts]) cut();
    };
    this.screens = makeScreens({
      ticketMark: null,
      database: this.database,
      log: makeLog("error", () => {}),
      paths: { recordings: () => "/nowhere" },
      roomsOf: () => [TARGET.room.room_uid],
      hasSpace: () => true,
      withFilmGuest: () => Promise.reject(new Error("no machine makes films here")),
      sandboxes,
      isCurrentKey: () => isCurrent,
      hold: (_, cut) => {
        cuts.add(cut);
        return () => void cuts.delete(cut);
      },
      ...options,
    });
  }

  call(): KeyCall {
    return trialCall(CALLER);
  }

  /** The picture, as a PNG; of another sandbox if `of` names one. */
  async picture(width?: number, of: Partial<Asker> = {}, call = this.call()): Promise<Uint8Array> {
    const target = { ...TARGET, row: { ...TARGET.row, ...of } } as ScreenTarget;
    const { picture } = await this.#run("screen_get", width === undefined ? {} : { width }, call, target);
    return picture ?? new Uint8Array(0);
  }

  /** The answer of `computer`. */
  async use(input: object, call = this.call()): Promise<Used> {
    return (await this.#run("computer", input, call)).body as Used;
  }

  /** The answer to a call about recordings. */
  async recordings(name: string, input: object = {}): Promise<unknown> {
    const { body, stream } = await this.#run(name, input, this.call());
    return stream ? new Uint8Array(await new Response(stream.bytes).arrayBuffer()) : body;
  }

  async ticket(drive: boolean): Promise<string> {
    return ((await this.#run("screen_ticket", { drive }, this.call())).body as { ticket: string }).ticket;
  }

  /** A live viewer of the screen, with a ticket or with a key. */
  async view(ticket?: string): Promise<Seat> {
    const caller = ticket === undefined ? CALLER : this.#bound("screen_view").admit?.(ticket, PLACE);
    if (!caller) throw new Error("nobody is let in by a ticket");
    const input = ticket === undefined ? {} : { ticket };
    const transfer = { ...NO_TRANSFER, websocket: true };
    const { conversation } = await this.#run("screen_view", input, trialCall(caller), TARGET, transfer);
    if (!conversation) throw new Error("no conversation");
    return new Seat(conversation);
  }

  #bound(name: string): Bound {
    const bound = this.screens.operations.find(({ operation }) => operation.name === name);
    if (!bound) throw new Error(`no operation ${name}`);
    return bound;
  }

  async #run(name: string, input: object, call: KeyCall, target = TARGET, transfer = NO_TRANSFER) {
    const bound = this.#bound(name);
    const broken = await bound.rules(input, target, []);
    if (broken.length > 0) throw new Error(JSON.stringify(broken));
    return await bound.run(call, input, target, transfer);
  }
}

export interface Used {
  action: string;
  width: number;
  height: number;
  cursor: [number, number];
  screenshot_b64: string | null;
}

/** The client's side of a conversation, as our own client of RFB takes it. */
export class Seat {
  readonly wire: Wire;
  /** Why it was closed: a code and words. */
  readonly closed: Promise<[code: number, reason: string]>;
  readonly #conversation: DuplexSession;

  constructor(conversation: DuplexSession) {
    this.#conversation = conversation;
    const closed = Promise.withResolvers<[number, string]>();
    this.closed = closed.promise;
    const came = new TransformStream<Uint8Array, Uint8Array>();
    const writer = came.writable.getWriter();
    writer.closed.catch(() => {});
    conversation.start({
      say: () => {},
      send: async (bytes) => await writer.write(Buffer.from(bytes)),
      close: (code, reason) => {
        closed.resolve([code, reason]);
        writer.close().catch(() => {});
      },
    });
    this.wire = {
      output: came.readable,
      write: async (bytes) => conversation.take(bytes),
      close: () => this.leave(),
    };
  }

  leave(): void {
    this.#conversation.left();
  }

  say(text: string): void {
    this.#conversation.hear(text);
  }
}

const PLACE = { room_id: "r", sandbox: "worker-1" };
const CALLER = {
  org_id: "org_1",
  key_id: "kid_1",
  name: "a key",
  scopes: ["exec"],
  room_ids: null,
  agent_id: null,
} as unknown as Caller;
const TARGET = {
  room: { room_id: "r", state: "active" },
  row: { sandbox_id: "sbx_1", agent_id: "worker-1", org_id: "org_1" as OrgId, state: "running" },
  isLookedAt: false,
} as unknown as ScreenTarget;
