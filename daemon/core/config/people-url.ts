/**
 * The URL of the service for browsers. Passkeys require a host name, and a session is valid for one origin only: on loopback, that origin
 * is `localhost`.
 */

const ADDRESS = /^(?:127\.0\.0\.1|\[::1\])$/;

/** The URL with `localhost` instead of a loopback address. */
export function peopleUrl(url: string): string {
  const place = new URL(url);
  if (!ADDRESS.test(place.hostname)) return url;
  return url.replace(place.hostname, "localhost");
}

/** All origins of a service on loopback; otherwise its only origin. */
export function originsOf(url: string): string[] {
  const { protocol, hostname, port, origin } = new URL(url);
  if (hostname !== "localhost" && !ADDRESS.test(hostname)) return [origin];
  return ["localhost", "127.0.0.1", "[::1]"].map((name) => `${protocol}//${name}${port === "" ? "" : `:${port}`}`);
}
