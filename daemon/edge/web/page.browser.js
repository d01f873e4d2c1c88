// What a browser adds to pages that work without it: the token of a link from behind the #, copying, and passkeys.

const token = document.querySelector("form[data-token] input[name=token]");
if (token && location.hash.length > 1) {
  token.value = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  token.form.requestSubmit();
}
// A new link may be pasted into a tab that shows the page of an old one: only the part behind the # is another then.
addEventListener("hashchange", () => {
  if (document.body.classList.contains("outside") && location.hash.length > 1) location.reload();
});
const returned = document.querySelector("form[data-go]");
if (returned) {
  history.replaceState(null, "", location.pathname);
  returned.requestSubmit();
}
for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    document.querySelector(".said").textContent = "Copied.";
    button.textContent = "Copied";
  });
}

const WHY = {
  InvalidStateError: "There is a passkey for this account on this device already.",
  NotAllowedError: "No passkey was given. Try again.",
  SecurityError: "Browsers keep no passkeys at this address.",
};
const kept = globalThis.PublicKeyCredential;

/** What the form says of the person goes into a passkey that is made. */
async function askPasskey({ dataset, form }) {
  const options = JSON.parse(dataset.options);
  if (dataset.passkey === "use") {
    return await navigator.credentials.get({ publicKey: kept.parseRequestOptionsFromJSON(options) });
  }
  options.user.name ||= form.elements.email.value;
  options.user.displayName ||= form.elements.name.value;
  return await navigator.credentials.create({ publicKey: kept.parseCreationOptionsFromJSON(options) });
}

/** Beside the button, where whoever pressed it looks. */
function refuse(button, text) {
  const said = button.form.querySelector("[role=alert]") ?? document.createElement("p");
  said.setAttribute("role", "alert");
  said.className = "trouble";
  said.textContent = text;
  button.after(said);
}

for (const button of document.querySelectorAll("button[data-passkey]")) {
  button.hidden = !kept?.parseCreationOptionsFromJSON;
  button.addEventListener("click", async () => {
    const { form } = button;
    const passwords = [...form.querySelectorAll("input[type=password]")];
    const need = (isNeeded) => {
      for (const each of passwords) each.required = isNeeded;
    };
    need(false);
    try {
      if (!form.reportValidity()) return;
      form.elements[button.dataset.as].value = JSON.stringify(await askPasskey(button));
      form.requestSubmit();
    } catch (error) {
      refuse(button, WHY[error.name] ?? "The browser gave no passkey.");
    } finally {
      need(true);
    }
  });
}
