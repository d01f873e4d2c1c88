/** `roomd login` and `roomd logout`: signs this user in at a service, without a key. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import { peopleUrl } from "../../../core/config/people-url.ts";
import { CliError } from "../../kit/cli-error.ts";
import { command } from "../../kit/command.ts";
import { findPlace } from "../../kit/connection.ts";
import { credentialsFile, forgetTokens, keepTokens } from "../../kit/credentials.ts";
import { type JsonOption, printable, say, showValue } from "../../kit/output.ts";
import { COMMAND_LINE_ID, type DeviceAuthorization, post, type TokenEndpoint } from "./token-endpoint.ts";

const DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";

export function loginCommand(): Command {
  const about = {
    summary: "sign in to a service with a browser, on this or another computer",
    notes: [
      "Prints a code and the page on which to enter it, and waits for the approval.",
      "Credentials are stored in ~/.config/roomd/credentials.json, for this user only. ROOMD_API_KEY takes precedence if it is set.",
    ],
    examples: ["roomd login https://rooms.example.org", "roomd login"],
  };
  return command("login [url]", about).action(async (url: string | undefined, options: JsonOption) => {
    const place = findPlace(url);
    const response = await post<DeviceAuthorization>(place, "/device_authorization", {
      client_id: COMMAND_LINE_ID,
      resource: place.url,
    });
    if (!response.ok) throw new CliError(response.description);
    const { user_code, verification_uri, verification_uri_complete } = response.body;
    for (const uri of [verification_uri, verification_uri_complete]) requireOwn(uri, place);
    await say(
      [
        printable(`Open ${verification_uri} and enter the code ${user_code}`),
        printable(`or open ${verification_uri_complete}`),
      ].join("\n"),
    );
    await letIn(place, response.body);
    await showValue({ url: place.url, file: credentialsFile() }, options, () => [`signed in at ${place.url}`]);
  });
}

/**
 * Throws CliError if a sign-in page belongs to another service: the user would approve a code that the configured service requested there.
 */
function requireOwn(uri: string, { url }: TokenEndpoint): void {
  // On loopback the pages are at `localhost`, even if the command line uses an IP address.
  if (URL.canParse(uri) && new URL(peopleUrl(uri)).origin === new URL(peopleUrl(url)).origin) return;
  throw new CliError(
    `The service at ${url} refers to ${printable(uri)} for signing in, which is another service. If it has two URLs, use the configured one (http.base_url).`,
  );
}

/** Polls at the interval that the service sets. Throws CliError. */
async function letIn(place: TokenEndpoint, { device_code, interval, expires_in }: DeviceAuthorization): Promise<void> {
  const form = { grant_type: DEVICE_GRANT, client_id: COMMAND_LINE_ID, device_code };
  const end = performance.now() + expires_in * 1000;
  let pauseMs = interval * 1000;
  while (performance.now() < end) {
    await sleep(pauseMs);
    const answer = await post(place, "/token", form);
    if (answer.ok) return keepTokens(place.url, answer.body, true);
    if (answer.error === "slow_down") pauseMs += interval * 1000;
    else if (answer.error !== "authorization_pending") throw new CliError(answer.description);
  }
  throw new CliError("The code was not entered in time. Run `roomd login` again for a new code.");
}

export function logoutCommand(): Command {
  const about = {
    summary: "sign out of a service that `roomd login` has signed in to",
    examples: ["roomd logout", "roomd logout https://rooms.example.org"],
  };
  return command("logout [url]", about).action(async (url: string | undefined, options: JsonOption) => {
    const place = findPlace(url);
    const storedTokens = forgetTokens(place.url);
    if (!storedTokens) throw new CliError(`You are not signed in at ${place.url}.`);
    // The tokens are removed here even if the service does not receive the revocation.
    await post(place, "/revoke", { token: storedTokens.refresh_token });
    await showValue({ url: place.url }, options, () => [`signed out at ${place.url}`]);
  });
}
