/** Owns one connection to PostgreSQL by the package `postgres`, held to what daemon/cluster/session.ts promises: never a second one. */
import { Socket } from "node:net";
import postgres from "postgres";
import type { Address } from "../../daemon/cluster/address.ts";
import type { OpenSession } from "../../daemon/cluster/session.ts";

export const openSession: OpenSession = async ({ address, onNotification }) => {
  const { tls, host, port, user, password, database } = address;
  const socket = new Socket();
  const over = new Promise<void>((resolve) => {
    socket.once("close", () => resolve());
  });
  let warnings = 0;
  let isTaken = false;
  const options = {
    user,
    password,
    database,
    max: 1,
    fetch_types: false,
    idle_timeout: 0,
    max_lifetime: null,
    connect_timeout: 0,
    onnotice: ({ severity }: { severity?: string }) => {
      if (severity === "WARNING") warnings++;
    },
    onnotify: (channel: string) => onNotification?.(channel),
    // It would connect again by itself, in the middle of a transaction too.
    socket: async () => {
      if (isTaken) throw new Error("the connection is over");
      isTaken = true;
      return await connected(socket, address);
    },
    host,
    port,
    ...(tls && {
      ssl: { rejectUnauthorized: tls.proven, servername: host, ...(tls.authority && { ca: tls.authority }) },
    }),
  };
  const sql = postgres(options as unknown as postgres.Options<Record<string, never>>);
  const run = async (text: string, values: readonly unknown[] = []) => {
    const answer = await sql.unsafe(text, [...values] as never[], { prepare: values.length > 0 });
    // Several statements have several answers.
    const answers = (Array.isArray(answer[0]) ? answer : [answer]) as unknown as (typeof answer)[];
    const last = answers.at(-1);
    return { rows: [...(last ?? [])] as Record<string, unknown>[], command: last?.command ?? "" };
  };
  const session = {
    run,
    over,
    get warnings() {
      return warnings;
    },
    discard: () => {
      socket.destroy();
      // Forgets what it would still wait for.
      void sql.end({ timeout: 0 });
    },
  };
  return { session, opened: run("SELECT 1").then(() => {}) };
};

async function connected(socket: Socket, { host, port }: Address): Promise<Socket> {
  await new Promise<void>((resolve, reject) => {
    socket.once("error", reject);
    socket.once("close", () => reject(new Error("the connection was closed")));
    const done = () => {
      socket.off("error", reject);
      resolve();
    };
    if (host.startsWith("/")) socket.connect(`${host}/.s.PGSQL.${port}`, done);
    else socket.connect(port, host, done);
  });
  return socket;
}
