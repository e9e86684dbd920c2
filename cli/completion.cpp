#include "cli/completion.h"

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/words.h"

namespace kiln::cli {

namespace {

// The words that may follow each command, by the command as it is typed.
void collect(const CLI::App& app, const std::string& typed,
             std::map<std::string, std::vector<std::string>>& words) {
  words[typed] = words_of(app);
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    collect(*command, typed + " " + command->get_name(), words);
  }
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

// Commands have no options before them, so the first words that are none are the command.
std::string bash(const std::map<std::string, std::vector<std::string>>& words) {
  std::string out =
      "# kiln completion bash >/etc/bash_completion.d/kiln, or: source <(kiln completion bash)\n"
      "_kiln() {\n"
      "  local word command=kiln\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case $word in -*) break ;; *) command+=\" $word\" ;; esac\n"
      "  done\n"
      "  local words=\n"
      "  case $command in\n";
  for (const auto& [command, all] : words) {
    const bool is_leaf = words.upper_bound(command + " ") == words.end() ||
                         !words.upper_bound(command + " ")->first.starts_with(command + " ");
    out += "    \"" + command + "\"" + (is_leaf ? "*" : "") + ") words='" + joined(all) + "' ;;\n";
  }
  return out +
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
         "}\n"
         "complete -o default -F _kiln kiln\n";
}

std::string zsh(const std::map<std::string, std::vector<std::string>>& words) {
  return "# kiln completion zsh >\"${fpath[1]}/_kiln\", or: source <(kiln completion zsh)\n"
         "autoload -U +X bashcompinit && bashcompinit\n" +
         bash(words);
}

std::string fish(const std::map<std::string, std::vector<std::string>>& words) {
  std::string out =
      "# kiln completion fish >~/.config/fish/completions/kiln.fish\n"
      "function __kiln_command\n"
      "  set -l words (commandline -opc)\n"
      "  string join ' ' (string match -v -- '-*' $words)\n"
      "end\n";
  for (const auto& [command, all] : words) {
    out += "complete -c kiln -n 'test (__kiln_command) = \"" + command + "\"' -a '" + joined(all) +
           "'\n";
  }
  return out;
}

}  // namespace

void add_completion(CLI::App& app, int& status) {
  CLI::App* command =
      app.add_subcommand("completion",
                         "Prints a script that lets a shell complete commands and options.\n"
                         "In bash: source <(kiln completion bash)");
  command->group("Commands");
  auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->type_name("")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([shell, &app, &status] {
    std::map<std::string, std::vector<std::string>> words;
    collect(app, "kiln", words);
    const std::string script = *shell == "bash"  ? bash(words)
                               : *shell == "zsh" ? zsh(words)
                                                 : fish(words);
    std::fputs(script.c_str(), stdout);
    status = 0;
  });
}

}  // namespace kiln::cli
