/** API client of the pages: read-only, as the person of the browser's session. */
import { signal } from "@preact/signals";
import type { Operation, OutputOf } from "../../../shared/api/contract.ts";
import type { Problem } from "../../../shared/api/errors.ts";

export type Query = Record<string, string | number | boolean | null | undefined>;

/** Why no more calls are answered: the session has ended. Null while it is valid. */
export const signedOut = signal<Problem | null>(null);

/** The longest Retry-After that a page waits for; a longer one is reported to the user. */
const LONGEST_WAIT_SECONDS = 5;

export class Refused extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.detail);
    this.problem = problem;
  }
}

export const UNREACHABLE = {
  status: 0,
  code: "unreachable",
  title: "The service does not answer",
  detail: "The service does not answer.",
  hint: "It may be restarting. This page resumes automatically as soon as the service is back.",
  errors: [],
} as unknown as Problem;

export function pathOf(path: string, query: Query = {}): string {
  const sent = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") sent.set(name, String(value));
  }
  const text = sent.toString();
  return text ? `${path}?${text}` : path;
}

/** Encodes a name as a path segment. */
export const part = (name: string) => encodeURIComponent(name);

/** Throws Refused. */
export async function get<Op extends Operation>(
  path: string,
  query?: Query,
  signal?: AbortSignal,
): Promise<OutputOf<Op>> {
  const response = await ask(pathOf(path, query), { Accept: "application/json" }, signal);
  return (await response.json()) as OutputOf<Op>;
}

/** Throws Refused, and the reason of `signal`. Waits and retries once if a short Retry-After was returned. */
export async function ask(path: string, headers: Record<string, string>, signal?: AbortSignal): Promise<Response> {
  const first = await once(path, headers, signal);
  if (first.ok) return first;
  const wait = Number(first.headers.get("retry-after") ?? Number.NaN);
  if (first.status !== 429 || !(wait <= LONGEST_WAIT_SECONDS)) throw await refusalOf(first);
  await new Promise((resolve) => setTimeout(resolve, wait * 1000));
  const second = await once(path, headers, signal);
  if (second.ok) return second;
  throw await refusalOf(second);
}

/** Throws Refused if the service does not answer, and the reason of `signal`. */
export async function once(path: string, headers: Record<string, string>, signal?: AbortSignal): Promise<Response> {
  try {
    return await fetch(path, { headers, credentials: "same-origin", ...(signal ? { signal } : {}) });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Refused(UNREACHABLE);
  }
}

async function refusalOf(response: Response): Promise<Refused> {
  const problem = ((await response.json().catch(() => null)) as Problem | null) ?? UNREACHABLE;
  return refusedBy(problem, response.status);
}

export function refusedBy(problem: Problem, status: number): Refused {
  if (status === 401) signedOut.value = problem;
  return new Refused(problem);
}
