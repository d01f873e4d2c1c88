/** A browser without a browser: it stores cookies, sends the headers of a browser's requests, and reads pages' forms. */
import type { Json, TestDaemon } from "../daemon.ts";

const COOKIE = /^((?:__Host-)?roomd(?:-browser|-asked|-visitor)?)=([^;]*)/;
const SESSION = /^(?:__Host-)?roomd$/;

export interface PageSeen {
  status: number;
  text: string;
  headers: Headers;
  /** The redirect's target; null for a page. */
  to: string | null;
}

export class Visitor {
  readonly #daemon: TestDaemon;
  /** By name; a copy of another visitor's cookies represents a copied browser. */
  readonly cookies = new Map<string, string>();

  constructor(daemon: TestDaemon) {
    this.#daemon = daemon;
  }

  /** A visitor that is signed in as the first owner of a fresh service. */
  static async owner(daemon: TestDaemon, { password = "a long enough secret" } = {}): Promise<Visitor> {
    const { stdout, stderr } = await daemon.cli(["user", "link", "--json"]);
    if (stdout === "") throw new Error(stderr);
    const token = new URL(JSON.parse(stdout).url).hash.slice(1);
    const visitor = new Visitor(daemon);
    await visitor.send("/setup", { token, step: "done", name: "Owner", email: "owner@example.org", password });
    if (visitor.session === "") throw new Error("the setup link has let nobody in");
    return visitor;
  }

  /** Of a request that a page of ours makes. */
  get headers(): Record<string, string> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    return { "sec-fetch-site": "same-origin", ...(cookie ? { cookie } : {}) };
  }

  /** The session's secret; "" without one. */
  get session(): string {
    return [...this.cookies].find(([name]) => SESSION.test(name))?.[1] ?? "";
  }

  /** Another browser that has the same cookies. */
  copy(): Visitor {
    const other = new Visitor(this.#daemon);
    for (const [name, value] of this.cookies) other.cookies.set(name, value);
    return other;
  }

  /** By default with the headers of a request from one of our pages. */
  async fetch(method: string, path: string, headers: Record<string, string> = {}, body?: string): Promise<Response> {
    const response = await fetch(this.#daemon.webUrl + path, {
      method,
      redirect: "manual",
      headers: { ...this.headers, ...headers },
      ...(body === undefined ? {} : { body }),
    });
    for (const each of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = COOKIE.exec(each) ?? [];
      if (value === "") this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    return response;
  }

  async see(path: string, headers: Record<string, string> = {}): Promise<PageSeen> {
    return await seen(await this.fetch("GET", path, headers));
  }

  async send(path: string, form: Record<string, string>, headers: Record<string, string> = {}): Promise<PageSeen> {
    const type = { "content-type": "application/x-www-form-urlencoded" };
    return await seen(await this.fetch("POST", path, { ...type, ...headers }, new URLSearchParams(form).toString()));
  }

  /** Sends a form, and follows the answer's redirect. */
  async submit(path: string, form: Record<string, string>): Promise<PageSeen> {
    const answer = await this.send(path, form);
    return answer.to === null ? answer : await this.see(answer.to);
  }

  async api(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
    const type: Record<string, string> = body === undefined ? {} : { "content-type": "application/json" };
    const text = body === undefined ? undefined : JSON.stringify(body);
    const response = await this.fetch(method, path, { ...type, ...headers }, text);
    return { status: response.status, body: (await response.json()) as Json };
  }
}

async function seen(response: Response): Promise<PageSeen> {
  const { status, headers } = response;
  return { status, headers, text: await response.text(), to: headers.get("location") };
}

/** The hidden fields of the form that has this one. */
export function formWith(page: string, name: string, value: string): Record<string, string> {
  for (const [, form = ""] of page.matchAll(/<form[^>]*>(.*?)<\/form>/gs)) {
    const fields = [...form.matchAll(/<input type="hidden" name="([^"]*)" value(?:="([^"]*)")?\/>/g)];
    const found = Object.fromEntries(fields.map(([, field, text = ""]) => [field, text]));
    if (found[name] === value) return found as Record<string, string>;
  }
  throw new Error(`the page has no form whose ${name} is ${value}`);
}
