/**
 * Listener of the SSH transport: it limits the time for login, and makes room for connections that log in. Logins are in connection.ts,
 * commands and sftp in session.ts.
 */
import { createServer, type Socket } from "node:net";
import { Server } from "ssh2";
import type { OrgId } from "../../../shared/ids.ts";
import { startTimer, stopTimer } from "../../core/clock.ts";
import { ConcurrencyLimit } from "../../core/concurrency/concurrency-limit.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { TakeSession } from "../hosts/ssh.ts";
import { ALGORITHMS } from "./algorithms.ts";
import { Connection, type ConnectionDeps } from "./connection.ts";
import { ForwardedSession } from "./forwarded/owner.ts";
import { endSocket } from "./graceful-close.ts";
import { offerHybrid } from "./hybrid-exchange.ts";
import { socketOf } from "./ssh2-internals.ts";
import { type StartupLimits, Startups } from "./startups.ts";

const IDENT = "roomd";
const KEEPALIVE_MS = 15_000;
/** Unanswered keepalives, one per KEEPALIVE_MS, after which the client is considered disconnected. */
const KEEPALIVES = 4;

export interface SshServer {
  port: number;
  /** Accepts sessions that other hosts forward to this host. */
  take: TakeSession;
  stop(): Promise<void>;
}

export interface SshListen {
  hostname: string;
  port: number;
  host_key: string;
  startups: StartupLimits;
}

/** Sockets of connections that wait for their turn of the event loop; startups are limited after it. */
const MAX_WAITING = 4096;

/** Resolves when it listens. Rejects with the system's error. */
export async function startSshServer(deps: ConnectionDeps, listen: SshListen): Promise<SshServer> {
  const startups = new Startups(listen.startups);
  /** Connections that wait for their turn of the event loop. */
  let waiting = 0;
  const sockets = new Set<Socket>();
  const entering = new WeakMap<Socket, { greet(): void; leave(): void }>();
  const { max_connections, max_connections_per_org } = deps.limits;
  const full = () => new ServiceError("rate_limited");
  const inAll = new ConcurrencyLimit(max_connections, full);
  const ofOrgs = new ConcurrencyLimit(max_connections_per_org, full);
  const enter = (orgId: OrgId) => {
    const leaveOrg = ofOrgs.take(orgId);
    try {
      const leave = inAll.take("all");
      return () => {
        leaveOrg();
        leave();
      };
    } catch (error) {
      leaveOrg();
      throw error;
    }
  };

  const ssh = new Server({
    hostKeys: [listen.host_key],
    ident: IDENT,
    algorithms: ALGORITHMS as never,
    keepaliveInterval: KEEPALIVE_MS,
    keepaliveCountMax: KEEPALIVES,
  } as ConstructorParameters<typeof Server>[0]);
  ssh.on("connection", (client, info) => {
    offerHybrid(client);
    const socket = socketOf(client);
    const startup = entering.get(socket);
    const versions = info.header.versions;
    const connection = new Connection(deps, client, socket, String(versions.software));
    client.once("handshake", () => startup?.greet());
    client.once("ready", () => {
      startup?.leave();
      try {
        socket.once("close", enter(connection.orgId));
      } catch {
        connection.cut("too many connections");
      }
    });
  });

  const admit = (socket: Socket) => {
    if (socket.destroyed) return;
    const startup = startups.enter(socket.remoteAddress ?? "", () => socket.destroy());
    const grace = startTimer(() => socket.destroy(), deps.limits.login_grace_ms);
    const leave = () => {
      stopTimer(grace);
      startup.leave();
    };
    entering.set(socket, { greet: startup.greet, leave });
    socket.once("close", leave);
    ssh.injectSocket(socket);
  };

  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    // ssh2 handles errors as soon as it has the socket.
    socket.on("error", () => {});
    // Otherwise a thousand simultaneous connections would be admitted, and as many dropped, in one turn of the event loop.
    const ip = socket.remoteAddress ?? null;
    const turn = deps.road.begin.request(ip, `ssh ${ip} ${socket.remotePort}`);
    if (!turn) return admit(socket);
    if (waiting >= MAX_WAITING) return void socket.destroy();
    waiting++;
    const left = () => void waiting--;
    void turn.then(() => admit(socket)).then(left, left);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host: listen.hostname, port: listen.port, backlog: 1024 }, resolve);
  });
  const address = server.address();
  return {
    port: typeof address === "object" && address ? address.port : listen.port,
    take: (ip) => new ForwardedSession({ ...deps, enter }, ip),
    stop: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) endSocket(socket);
      await closed;
    },
  };
}
