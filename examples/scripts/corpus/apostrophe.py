messages = ["it's late", "all done"]
for message in messages:
    print(message)
print('it's what it is')
