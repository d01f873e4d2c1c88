/** The people of a test: the creation of users with an organization and a role, and the passing of time for their sessions. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { makeOrg } from "../api/calls.ts";
import { Visitor } from "./browser/visitor.ts";
import type { Json, TestDaemon } from "./daemon.ts";

export const PASSWORD = "a long enough secret";

export const pathOf = (url: string): string => new URL(url).pathname;
export const tokenOf = (url: string): string => new URL(url).hash.slice(1);
export const idOf = async (visitor: Visitor): Promise<string> => (await visitor.api("GET", "/v1/account")).body.user_id;

/** The path of an invitation to a role. */
export async function invite(visitor: Visitor, role: string, more: Json = {}): Promise<string> {
  return pathOf((await visitor.api("POST", "/v1/orgs/self/invitations", { role, ...more })).body.url);
}

/** Backdates the proof of identity of all sessions by 700 s. */
export function staleProofs(daemon: TestDaemon): void {
  const before = new Date(Date.now() - 700_000).toISOString();
  sql(daemon, (database) => void database.prepare("UPDATE sessions SET proved_at = ?").run(before));
}

/** As if the user had proved their identity right now, without the CPU time of a password hash. */
function freshProof(daemon: TestDaemon, userId: string): void {
  const update = "UPDATE sessions SET proved_at = ? WHERE user_id = ?";
  sql(daemon, (database) => void database.prepare(update).run(new Date().toISOString(), userId));
}

function sql<T>({ dataDir }: TestDaemon, work: (database: Database) => T): T {
  const database = new Database(join(dataDir, "roomd.db"));
  try {
    database.exec("PRAGMA busy_timeout = 5000");
    return work(database);
  } finally {
    database.close();
  }
}

export class People {
  readonly #daemon: TestDaemon;
  readonly owner: Visitor;
  #count = 0;

  private constructor(daemon: TestDaemon, owner: Visitor) {
    this.#daemon = daemon;
    this.owner = owner;
  }

  /** The first of a fresh service. */
  static async first(daemon: TestDaemon): Promise<People> {
    return new People(daemon, await Visitor.owner(daemon, { password: PASSWORD }));
  }

  /** A new member with this role, in the organization that `by` has selected. */
  async member(role: string, { email = this.#email("p"), by = this.owner } = {}): Promise<Visitor> {
    const visitor = new Visitor(this.#daemon);
    await visitor.send(await invite(by, role), { name: email, email, password: PASSWORD });
    if (visitor.session === "") throw new Error(`${email} was not let in`);
    return visitor;
  }

  /** The owner of another organization of the service. */
  async foreign(name = `org ${++this.#count}`, email = this.#email("o")): Promise<Visitor> {
    const { org_id } = await makeOrg(this.#daemon, name);
    const argv = ["user", "create", email, "--name", "Mallory", "--role", "owner", "--org", org_id, "--json"];
    const { stdout } = await this.#daemon.cli(argv);
    const visitor = new Visitor(this.#daemon);
    await visitor.send("/setup", { token: tokenOf(JSON.parse(stdout).url), step: "done", password: PASSWORD });
    return visitor;
  }

  staleProofs(): void {
    staleProofs(this.#daemon);
  }

  freshProof(userId: string): void {
    freshProof(this.#daemon, userId);
  }

  /** With the password, for the signed-in user. */
  async prove(visitor: Visitor): Promise<void> {
    const { name } = (await visitor.api("GET", "/v1/account")).body;
    await visitor.send("/account", { do: "name", name, proof: PASSWORD });
  }

  /** Direct access to the service's database. */
  sql<T>(work: (database: Database) => T): T {
    return sql(this.#daemon, work);
  }

  #email(prefix: string): string {
    return `${prefix}${++this.#count}@example.org`;
  }
}
