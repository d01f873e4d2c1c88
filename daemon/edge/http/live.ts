/** The streams of a live connection: separate requests with the credentials of its handshake. */
import { newId } from "../../../shared/ids.ts";
import type { Ask } from "../live/connection.ts";
import type { Arrival } from "./http-request.ts";

const CREDENTIALS = ["authorization", "cookie", "host"];

/** `isSession`: a session cookie authenticated the handshake, so the page is the service's own. */
export function askAs(
  arrival: Arrival,
  isSession: boolean,
  arrivals: WeakMap<Request, Arrival>,
  answer: (request: Request) => Response | Promise<Response>,
): Ask {
  const headers = new Headers({ accept: "application/x-ndjson" });
  for (const name of CREDENTIALS) {
    const value = arrival.request.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  if (isSession) headers.set("sec-fetch-site", "same-origin");
  const { origin } = arrival.url;
  return async (path, signal) => {
    const request = new Request(origin + path, { headers, signal });
    arrivals.set(request, arrival.another(request, newId("req")));
    return await answer(request);
  };
}
