/**
 * Owns the command line's way to the service, which is the SDK: with this user's connection, a line that says what is waited for, and
 * every way to fail as a CliError. Nobody waits for a service that is not there: only what broke off in the middle is tried again.
 */

import {
  Client,
  type Download,
  type DownloadOptions,
  type Input,
  type OperationName,
  type Reply,
  type Result,
  type StreamName,
} from "../../sdk/typescript/src/client.ts";
import type { EventOptions } from "../../sdk/typescript/src/stream.ts";
import type { CallOptions, FileBody, Retry } from "../../sdk/typescript/src/transport.ts";
import type { InputOf, Operation, OutputOf } from "../../shared/api/contract.ts";
import { VERSION } from "../../shared/version.ts";
import { CliError, EXIT, toCliError } from "./cli-error.ts";
import { findConnection } from "./connection.ts";
import { withProgress } from "./progress.ts";

/** An input whose optional fields may also be there as undefined, as unused options of a command are. */
type Loose<T> = { [K in keyof T]: object extends Pick<T, K> ? T[K] | undefined : T[K] };

/** The service has its own deadlines. */
const PATIENT = { timeoutMs: Number.POSITIVE_INFINITY };

/** What goes on once it has begun: a service that is restarted comes back. */
export const LASTING: Retry = { after: "any", forMs: 120_000 };

/** Calls an operation with a JSON answer. Throws CliError. */
export function call<Op extends Operation>(
  operation: Op,
  input: Loose<InputOf<Op>>,
  options: CallOptions & { body?: FileBody } = {},
): Promise<Reply<OutputOf<Op>>> {
  return asked(operation, (client) =>
    client.reply(operation.name as OperationName, input as never, { ...PATIENT, ...options }),
  ) as Promise<Reply<OutputOf<Op>>>;
}

/** A file, or whatever else is no JSON, as it comes. Throws CliError while it is asked for, and what the SDK does while it comes. */
export function download<Op extends Operation>(
  operation: Op,
  input: Loose<InputOf<Op>>,
  options: DownloadOptions = {},
): Promise<Download> {
  return asked(operation, (client) =>
    client.download(operation.name as OperationName, input, { ...PATIENT, ...options }),
  );
}

/** The events of a stream, gone on with where it is cut. Throws what the SDK does. */
export async function* events<Name extends StreamName>(
  operation: Operation & { name: Name },
  input: Loose<Input<Name>>,
  options: EventOptions = {},
): AsyncGenerator<Exclude<Result<Name>, { type: "ping" | "error" }>> {
  yield* (await sdk(operation)).events(operation.name, input as Input<Name>, options);
}

/** The SDK's client for this operation. Throws CliError where nobody has signed in, and it wants somebody. */
export async function sdk(operation: Operation): Promise<Client> {
  const { url, ca, key } = await findConnection();
  if (key === null && operation.access !== "open" && !operation.openToHost) {
    const hint =
      "`roomd login` signs you in. `roomd init` prints the first key, and `roomd key create` makes more. `roomd setup` keeps its key in setup.env in data_dir.";
    throw new CliError({ detail: "ROOMD_API_KEY is not set.", errors: [], hint }, EXIT.usage);
  }
  return clientOf(url, ca);
}

const clients = new Map<string, Client>();

/** One of each service, which keeps its connections. */
function clientOf(url: string, ca: string | null): Client {
  const name = `${url} ${ca}`;
  const known = clients.get(name);
  if (known) return known;
  const client = new Client({
    url,
    // A token of who has signed in is another after an hour.
    apiKey: async () => (await findConnection()).key,
    ...(ca === null ? {} : { ca }),
    userAgent: `roomd-cli/${VERSION}`,
    retry: { after: "interrupted" },
  });
  clients.set(name, client);
  return client;
}

async function asked<T>(operation: Operation, work: (client: Client) => Promise<T>): Promise<T> {
  const client = await sdk(operation);
  try {
    return await withProgress(waitFor(operation), () => work(client));
  } catch (error) {
    throw toCliError(error);
  }
}

/** What is said of a call of which its command has nothing better to say. */
function waitFor({ summary }: Operation): string {
  return `waiting for the service: ${summary.slice(0, 1).toLowerCase()}${summary.slice(1)}`;
}
