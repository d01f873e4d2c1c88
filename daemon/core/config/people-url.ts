/**
 * The URL at which people find the service. Passkeys work at names only, and a session of one origin is not one of another: on
 * loopback the one origin is `localhost`.
 */

const ADDRESS = /^(?:127\.0\.0\.1|\[::1\])$/;

/** The same URL with the name of loopback in place of its address. */
export function peopleUrl(url: string): string {
  const place = new URL(url);
  if (!ADDRESS.test(place.hostname)) return url;
  return url.replace(place.hostname, "localhost");
}

/** All origins of the service on loopback, or its one origin elsewhere. */
export function originsOf(url: string): string[] {
  const { protocol, hostname, port, origin } = new URL(url);
  if (hostname !== "localhost" && !ADDRESS.test(hostname)) return [origin];
  return ["localhost", "127.0.0.1", "[::1]"].map((name) => `${protocol}//${name}${port === "" ? "" : `:${port}`}`);
}
