/** Owns the HTTP client: it calls operations of the list, and turns every way to fail into a sentence. */
import type { InputOf, Operation, OutputOf } from "../../shared/api/contract.ts";
import type { Problem } from "../../shared/api/errors.ts";
import { VERSION } from "../../shared/version.ts";
import { errnoOf } from "../core/service-error.ts";
import { CliError, type Complaint, EXIT } from "./cli-error.ts";
import { type Connection, findConnection } from "./connection.ts";
import { withProgress } from "./progress.ts";

export interface Reply<T> {
  value: T;
  /** The body as it came. */
  text: string;
  status: number;
}

/** An input whose optional fields may also be there as undefined, as unused options of a command are. */
type Loose<T> = { [K in keyof T]: object extends Pick<T, K> ? T[K] | undefined : T[K] };

/** Calls an operation with a JSON answer. Throws CliError. */
export async function call<Op extends Operation>(
  operation: Op,
  input: Loose<InputOf<Op>>,
): Promise<Reply<OutputOf<Op>>> {
  const { response, text } = await withProgress(waitFor(operation), async () => {
    const answered = await send(operation, input);
    return { response: answered, text: await answered.text() };
  });
  try {
    return { value: JSON.parse(text), text, status: response.status };
  } catch {
    throw notRoomd(response);
  }
}

/** What is said of a call of which its command has nothing better to say. */
function waitFor({ summary }: Operation): string {
  return `waiting for the service: ${summary.slice(0, 1).toLowerCase()}${summary.slice(1)}`;
}

interface SendOptions {
  /** The body of an operation whose body is a file. */
  bytes?: RequestInit["body"];
  headers?: Record<string, string>;
}

/** Sends a request; the answer is a success. */
export async function send(operation: Operation, input: object, options: SendOptions = {}): Promise<Response> {
  const connection = await findConnection();
  if (connection.key === null && operation.access !== "open" && !operation.openToHost) {
    const hint =
      "`roomd login` signs you in. `roomd init` prints the first key, and `roomd key create` makes more. `roomd setup` keeps its key in setup.env in data_dir.";
    throw new CliError({ detail: "ROOMD_API_KEY is not set.", errors: [], hint }, EXIT.usage);
  }
  const { path, query, body } = split(operation, input);
  const headers = new Headers({ "User-Agent": `roomd-cli/${VERSION}`, ...options.headers });
  if (process.env.TRACEPARENT) headers.set("traceparent", process.env.TRACEPARENT);
  if (connection.key !== null) headers.set("Authorization", `Bearer ${connection.key}`);
  if (body !== null) headers.set("Content-Type", "application/json");
  const response = await withProgress(waitFor(operation), () =>
    reach(connection, `${connection.url}${path}${query}`, {
      method: operation.method,
      headers,
      body: options.bytes ?? body,
      redirect: "manual",
      // Bun gives up after five minutes otherwise; the service has its own deadlines.
      timeout: false,
      ...(connection.ca === null ? {} : { tls: { ca: connection.ca } }),
    } as RequestInit),
  );
  // /health answers as fully with 503.
  const isAnswer = response.ok || (isJson(response) && Object.values(operation.outcomes).includes(response.status));
  if (isAnswer) return response;
  throw await refusal(response);
}

/** Parts of the input by where the operation wants them. */
function split(operation: Operation, given: object) {
  const input = given as Record<string, unknown>;
  const query = new URLSearchParams();
  const body: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(input)) {
    if (value === undefined || name in operation.params.properties) continue;
    if (name in operation.query.properties) query.set(name, String(value));
    else body[name] = value;
  }
  const path = operation.path.replace(/\{(\w+)(\*?)\}/g, (_, name: string, rest: string) => {
    const value = String(input[name]);
    return rest ? value.replace(/^\/+/, "").split("/").map(segment).join("/") : segment(value);
  });
  const hasBody = operation.body !== null && operation.body !== "bytes";
  return { path, query: query.size > 0 ? `?${query}` : "", body: hasBody ? JSON.stringify(body) : null };
}

/** Part of a URL's path. Throws CliError for . and .., which would lead elsewhere before the service sees them. */
function segment(text: string): string {
  if (text === "." || text === "..") throw new CliError(`A name or path may not have ${text} in it.`, EXIT.usage);
  return encodeURIComponent(text);
}

async function reach(connection: Connection, url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (error) {
    throw Object.assign(new CliError(whyUnreachable(connection, error)), { unreachable: true });
  }
}

function whyUnreachable({ url }: Connection, error: unknown): Complaint {
  const because = (detail: string, hint: string) => ({ detail, errors: [], hint });
  const code = errnoOf(error) ?? "";
  const message = error instanceof Error ? error.message : String(error);
  if (/CERT|SELF_SIGNED|UNABLE_TO_|ALTNAME/.test(code)) {
    return because(
      `The certificate of ${url} is not trusted (${message}).`,
      "Put the service's certificate file in ROOMD_CA_CERT.",
    );
  }
  if (code === "EPROTO") return because(`${url} does not speak TLS.`, "Try http:// in ROOMD_URL.");
  if (code === "ECONNRESET") {
    return because(
      `The connection to ${url} broke before the answer came. The call may or may not have been done.`,
      "If the service uses TLS, ROOMD_URL must begin with https://.",
    );
  }
  const why = /^(ECONNREFUSED|ConnectionRefused)$/.test(code) ? "" : ` (${message.split(". ")[0]})`;
  return because(
    `No service answers at ${url}${why}.`,
    "Start it with `systemctl start roomd` (without systemd: `roomd serve`), or set ROOMD_URL to its address.",
  );
}

function isJson({ headers }: Response): boolean {
  return headers.get("content-type")?.startsWith("application/json") === true;
}

async function refusal(response: Response): Promise<CliError> {
  const type = response.headers.get("content-type") ?? "";
  if (!type.startsWith("application/problem+json")) return notRoomd(response);
  try {
    return new CliError((await response.json()) as Problem);
  } catch {
    return notRoomd(response);
  }
}

function notRoomd(response: Response): CliError {
  const { origin } = new URL(response.url);
  const detail = `${origin} answered ${response.status}, but it is not roomd.`;
  return new CliError({ detail, errors: [], hint: "Set ROOMD_URL to the address of the service." });
}
