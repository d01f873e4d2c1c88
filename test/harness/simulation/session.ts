/** A daemon's sessions with the simulated PostgreSQL, as its driver has them with a server. */
import type { OpenSession, QueryResult, Session } from "../../../daemon/cluster/session.ts";
import type { Network } from "./network.ts";
import { type PostgresModel, ServerSession } from "./postgres.ts";
import type { Process, World } from "./world.ts";

export const DATABASE = "postgres";
/** Time after which the server ends a session if its client has taken nothing (tcp_user_timeout). */
const GONE_MS = 20_000;

interface Asked {
  settle(answer: QueryResult | Error): void;
}

/** How the daemon of a host opens sessions. */
export function openingOf(
  world: World,
  network: Network,
  server: PostgresModel,
  host: string,
  process: Process,
): OpenSession {
  return async ({ onNotification }) => {
    const requests: Asked[] = [];
    const over = Promise.withResolvers<void>();
    let isOver = false;
    let theirs: ServerSession | null = null;
    const finish = (error: Error) => {
      if (isOver) return;
      isOver = true;
      for (const each of requests.splice(0)) each.settle(error);
      over.resolve();
    };
    const toServer = (arrive: () => void) => network.send(host, DATABASE, null, arrive);
    const toClient = (arrive: () => void) => {
      const mayBeLost = network.isCut(DATABASE, host);
      let isTaken = false;
      network.send(DATABASE, host, process, () => {
        isTaken = true;
        arrive();
      });
      if (!mayBeLost) return;
      world.after(GONE_MS, null, () => {
        if (!isTaken) theirs?.end(null);
      });
    };
    const leave = () => toServer(() => theirs?.end(null));
    process.onDeath(leave);
    const opened = new Promise<void>((resolve, reject) => {
      toServer(() => {
        if (server.isDown) {
          toClient(() => {
            finish(new Error("connect ECONNREFUSED"));
            reject(new Error("connect ECONNREFUSED"));
          });
          return;
        }
        theirs = new ServerSession(
          world,
          server,
          {
            notified: (channel) => toClient(() => isOver || onNotification?.(channel)),
            over: (error) => toClient(() => finish(error as Error)),
          },
          process.name,
        );
        toClient(resolve);
      });
      void over.promise.then(() => reject(new Error("Connection terminated")));
    });
    opened.catch(() => {});
    const ask = (text: string, values: readonly unknown[]) =>
      new Promise<QueryResult>((resolve, reject) => {
        if (isOver) return reject(new Error("Client was closed and is not queryable"));
        const each: Asked = {
          settle: (answer) => (answer instanceof Error ? reject(answer) : resolve(answer)),
        };
        requests.push(each);
        toServer(() =>
          theirs?.run(text, values, (answer) =>
            toClient(() => {
              const at = requests.indexOf(each);
              if (at === -1) return;
              requests.splice(at, 1);
              each.settle(answer);
            }),
          ),
        );
      });
    let before: Promise<unknown> = Promise.resolve();
    const session: Session = {
      run: (text, values = []) => {
        const answer = before.then(() => ask(text, values));
        before = answer.catch(() => {});
        return answer;
      },
      over: over.promise,
      warnings: 0,
      discard: () => {
        if (isOver) return;
        leave();
        finish(new Error("Connection terminated"));
      },
    };
    return { session, opened };
  };
}
